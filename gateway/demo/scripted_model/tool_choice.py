"""Chooses the offered tool that shares the most words with a phrase."""

import re
from collections.abc import Sequence
from typing import Final

from gateway.demo.scripted_model.dialogue import OfferedTool
from gateway.demo.scripted_model.schemas import required_of
from gateway.demo.scripted_model.words import vocabulary

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD: Final = re.compile(r"[^\W_]+")
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_SIGN: Final = re.compile(r"(?<=\d)\s?([+*/])\s?(?=\d)")
_ENDINGS: Final = ("ing", "es", "ed", "s")
# Long descriptions mention many topics; the purpose of a tool stands at the beginning.
_DESCRIPTION: Final = 160
FITS: Final = 2

_STOP: Final = vocabulary(
    """
    a an the of for to in on at by and or then is are was be do does it its this that these those with from into as me
    my i you your we us please can could would what who which how when where why give tell want need now first get set
    use run call tool function given return current if not all any one value name string number
    """
)
# Maps common words to the words in tool names.
_MEANS: Final = {
    "+": "add", "plus": "add", "sum": "add", "total": "add", "minus": "subtract", "times": "multiply",
    "product": "multiply", "*": "multiply", "divided": "divide", "/": "divide", "calculat": "calculate",
    "comput": "calculate", "temperature": "weather", "hot": "weather", "cold": "weather", "warm": "weather",
    "rain": "weather", "sunny": "weather", "forecast": "weather", "clock": "time", "o'clock": "time",
    "lookup": "search", "find": "search", "google": "search", "look": "search", "show": "read", "open": "read",
    "cat": "read", "read": "view", "mail": "email", "shell": "bash", "command": "bash", "execute": "bash",
    "terminal": "bash",
}  # fmt: skip

# More words that express a request and are not part of its object.
_VERBS: Final = vocabulary("list check help file files hi hello hey please today tomorrow is there")
# Tools that change files: those with a _PATCHES word by their name alone, those with an _EDITS word only if they also
# mention a file.
_PATCHES: Final = vocabulary("patch diff editor")
_EDITS: Final = vocabulary(
    "write edit multiedit create replace insert update save delete remove move rename overwrite append put mkdir rm mv"
)
_FILES: Final = vocabulary("path paths file files filename filepath directory dir dirpath folder notebook")


def words(text: str) -> frozenset[str]:
    """Returns the words that carry meaning, without endings; for scripts without blanks, every pair of characters."""
    found = {_stem(word) for word in _WORD.findall(_CAMEL.sub(" ", text).lower()) if word not in _STOP}
    for run in _CJK.findall(text):
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return frozenset(found)


def named_by(phrase: str, tool: OfferedTool) -> frozenset[str]:
    """Returns the words of a phrase, in lower case, that refer to the tool and so are not values for it."""
    name = words(tool.name)
    spoken = _WORD.findall(phrase.lower())
    return frozenset(word for word in spoken if ({_stem(word)} | _meanings(word)) & name)


def object_of(phrase: str, named: frozenset[str]) -> str:
    """Returns a phrase without its verbs, its function words and the words that refer to the tool."""
    spoken = re.findall(r"[^\s?!.,;:\"`]+", phrase)
    return " ".join(word for word in spoken if word.lower() not in _STOP | _MEANS.keys() | _VERBS | named)


def changes_files(tool: OfferedTool) -> bool:
    """Returns whether a call could change the user's files; the demo must not change files in a user's folder."""
    name = set(name_parts(tool.name))
    properties = tool.parameters.get("properties")
    files = name.union(*map(name_parts, properties)) if isinstance(properties, dict) else name
    return bool(name & _PATCHES or (name & _EDITS and files & _FILES))


def best_tool(phrase: str, tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """Returns the tool that fits best, the earlier of equals; None when none fits. A tool that requires the id of
    something that the phrase does not mention, such as a running shell, comes after all others."""
    return _best(phrase, [tool for tool in tools if not _lacks_id(phrase, tool)]) or _best(phrase, tools)


def _best(phrase: str, tools: Sequence[OfferedTool]) -> OfferedTool | None:
    ranked = [(fit(phrase, tool), -at) for at, tool in enumerate(tools)]
    if not ranked or max(ranked)[0] < FITS:
        return None
    return tools[-max(ranked)[1]]


def fit(phrase: str, tool: OfferedTool) -> int:
    """Returns a score of how well a tool fits: its name counts most, then its description and its parameters."""
    spoken = words(phrase) | _meanings(phrase)
    name = words(tool.name)
    about = words(tool.description[:_DESCRIPTION]) - name
    properties = tool.parameters.get("properties")
    asks = words(" ".join(properties)) - name - about if isinstance(properties, dict) else frozenset()
    literal = 4 if re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", phrase) else 0
    return literal + 3 * len(spoken & name) + len(spoken & about) + len(spoken & asks)


def _lacks_id(phrase: str, tool: OfferedTool) -> bool:
    spoken = words(phrase)
    ids = [name_parts(name) for name in required_of(tool.parameters)]
    return any(len(parts) > 1 and parts[-1] == "id" and not spoken.intersection(parts) for parts in ids)


def _meanings(phrase: str) -> frozenset[str]:
    spoken = (*_WORD.findall(phrase.lower()), *_SIGN.findall(phrase))
    return frozenset(_MEANS[form] for word in spoken for form in (word, _stem(word)) if form in _MEANS)


def name_parts(name: str) -> list[str]:
    """Splits a name into its words, in lower case."""
    return [part.lower() for part in _WORD.findall(_CAMEL.sub(" ", name))]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
