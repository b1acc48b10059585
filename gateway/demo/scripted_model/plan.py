"""Plans the rounds of calls that answer a question with the offered tools."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.demo.scripted_model.arguments import build_arguments
from gateway.demo.scripted_model.dialogue import OfferedTool
from gateway.demo.scripted_model.phrase_values import find_values, number
from gateway.demo.scripted_model.tool_choice import best_tool, changes_files, named_by

MOST_STEPS: Final = 20
# The limit for questions of any length, because a client's own loop guard stops repeated calls.
MOST_ROUNDS: Final = 5
MOST_CALLS: Final = 4

_STEPS: Final = re.compile(r"\bin\s+(\w+)\s+(?:steps|rounds)\b|\b(\w+)[\s-]steps?\b", re.I)
_THEN: Final = re.compile(
    r"[\s,;.]*\b(?:and\s+)?(?:then|afterwards|after\s+that|next|finally|lastly)\b[\s,:]*|(?:^|\s)\d+[.)]\s+|\n\s*[-*]\s+",
    re.I,
)
_FIRST: Final = re.compile(r"\bfirst(?:ly)?\b[\s,:]*", re.I)
_AND: Final = re.compile(r"\s*(?:[,;]\s*(?:and\s+|also\s+)?|\band\s+(?:also\s+)?|\bas\s+well\s+as\s+)", re.I)
_QUOTES: Final = re.compile(r"`[^`]*`|\"[^\"]*\"")
_SMALL_TALK: Final = re.compile(
    r"\s*(?:hi|hello|hey|yo|thanks?(?: you)?|good (?:morning|evening|day)|how are you|who are you|ping|test|ok|bye)\b"
    r"|\s*你好",
    re.I,
)


class Intent(msgspec.Struct, frozen=True):
    """One planned call: the tool, the words that ask for it, and the number of earlier calls for the same words."""

    tool: OfferedTool
    phrase: str
    step: int = 1

    def arguments(self) -> dict[str, Json]:
        """Returns the arguments of the call."""
        named = named_by(self.phrase, self.tool)
        return build_arguments(self.tool.parameters, self.phrase, self.step, named)


Plan = tuple[tuple[Intent, ...], ...]


def plan_rounds(question: str, tools: Sequence[OfferedTool], *, parallel: bool = True) -> Plan:
    """Plans the rounds of calls. They are few, and each call occurs once unless the question asks for more; empty when
    no tool fits. Calls joined by `and` run in parallel, unless `parallel` is off."""
    tools = [tool for tool in tools if not changes_files(tool)]
    if not tools:
        return ()
    steps = [step for step in _steps(question) if step.strip()]
    rounds = [found for step in steps if (found := _intents(step, tools))]
    if not rounds and len(tools) == 1 and not is_small_talk(question):
        rounds = [(Intent(tools[0], question),)]
    if not parallel:
        rounds = [(intent,) for found in rounds for intent in found]
    rounds = _limited(rounds)
    wanted = _wanted_steps(question) if rounds else None
    return tuple(_repeated(rounds, wanted) if wanted else rounds)


def is_small_talk(question: str) -> bool:
    """Returns whether a question asks for nothing that a tool could do."""
    return _SMALL_TALK.match(question) is not None


def _limited(rounds: list[tuple[Intent, ...]]) -> list[tuple[Intent, ...]]:
    made: set[str] = set()
    limited = []
    for found in rounds:
        new = []
        for intent in found:
            call = repr((intent.tool.name, intent.arguments()))
            if call not in made:
                new.append(intent)
            made.add(call)
        limited.append(tuple(new[:MOST_CALLS]))
    return [found for found in limited if found][:MOST_ROUNDS]


def _repeated(rounds: list[tuple[Intent, ...]], wanted: int) -> Iterator[tuple[Intent, ...]]:
    for at in range(wanted):
        step = at // len(rounds) + 1
        yield tuple(msgspec.structs.replace(intent, step=step) for intent in rounds[at % len(rounds)])


def _wanted_steps(question: str) -> int | None:
    """Returns the number of steps that the question asks for: `in five steps`, `a 3-step plan`."""
    for phrase in _STEPS.findall(question):
        numbers = find_values(phrase[0] or phrase[1]).numbers
        if numbers:
            return max(1, min(int(number(phrase[0] or phrase[1])), MOST_STEPS))
    return None


def _steps(question: str) -> list[str]:
    # Inside quotes `then` and `and` are part of a value, so they are hidden while the question is split.
    quotes = _QUOTES.findall(question)
    hidden = _QUOTES.sub("\ue000", _STEPS.sub(" ", question))
    parts = _THEN.split(_FIRST.sub(" ", hidden))
    return _shown(parts, quotes)


def _intents(step: str, tools: Sequence[OfferedTool]) -> tuple[Intent, ...]:
    quotes = _QUOTES.findall(step)
    phrases = [phrase for phrase in _shown(_AND.split(_QUOTES.sub("\ue000", step)), quotes) if phrase.strip()]
    intents: list[Intent] = []
    for phrase in phrases:
        tool = best_tool(phrase, tools)
        if tool is not None:
            intents.append(Intent(tool, phrase))
        elif intents and _is_value(phrase):
            intents = _continued(intents, phrase)
        elif intents:
            intents[-1] = Intent(intents[-1].tool, f"{intents[-1].phrase} and {phrase}")
    if not intents and (tool := best_tool(step, tools)) is not None:
        return (Intent(tool, step),)
    return tuple(intents)


def _continued(intents: list[Intent], phrase: str) -> list[Intent]:
    """`weather in Paris and Rome` asks twice; `add 2 and 3` asks once, for a tool that takes two numbers."""
    last = intents[-1]
    found = find_values(phrase)
    if not (found.names or found.quoted or found.paths) or _accepts_list(last.tool):
        return [*intents[:-1], Intent(last.tool, f"{last.phrase} and {phrase}")]
    return [*intents, Intent(last.tool, phrase)]


def _is_value(phrase: str) -> bool:
    found = find_values(phrase)
    return len(phrase.split()) <= 4 and bool(found.numbers or found.names or found.quoted or found.paths)


def _accepts_list(tool: OfferedTool) -> bool:
    properties = tool.parameters.get("properties")
    schemas = properties.values() if isinstance(properties, dict) else ()
    return any(isinstance(schema, dict) and schema.get("type") == "array" for schema in schemas)


def _shown(parts: list[str], quotes: list[str]) -> list[str]:
    left = iter(quotes)
    return [re.sub("\ue000", lambda _: next(left, ""), part) for part in parts]
