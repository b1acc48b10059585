"""Computes the reply of a small scripted model; the same dialogue always gets the same reply.

With tools it calls those that fit the question, step by step; with their results it replies by quoting them; without
tools it replies in a few sentences.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from gateway.demo.scripted_model.arguments import absolute_paths
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, PlannedCall, Reply, Result
from gateway.demo.scripted_model.pictures import description
from gateway.demo.scripted_model.plan import Intent, Plan, is_small_talk, plan_rounds
from gateway.demo.scripted_model.prose import answer, quotation
from gateway.demo.scripted_model.summary import summary
from gateway.demo.scripted_model.tool_choice import changes_files

QUOTED: Final = 4000
_THINK: Final = re.compile(r"\b(?:think|reason(?:ing)?|step by step|思考)\b", re.I)
_SEE: Final = re.compile(r"\b(?:describe|see|pictures?|images?|photos?|screenshots?)\b", re.I)
# Frameworks offer a tool for the final answer and force a call in every round; this tool is called after all others.
_FINAL: Final = re.compile(r"final|answer|output|submit|respond|finish|complet", re.I)
# What a gateway says of a function that loads further ones, and what Claude Code 2.1.330 says of its own.
_SEARCH: Final = re.compile(r"Loads tools\.|Fetches full schema definitions for deferred tools")
_LOOKING: Final = "I look for a tool. "


def reply(dialogue: Dialogue) -> Reply:
    """Returns the scripted model's next output."""
    if (summarised := summary(dialogue.question)) is not None:
        return Reply(text=summarised)
    tools = _callable(dialogue)
    search = next((tool for tool in tools if _SEARCH.match(tool.description)), None)
    if search is not None:
        tools = tuple([tool for tool in tools if tool is not search])
        # The results of a search are no step of the plan.
        rounds = tuple([found for found in dialogue.rounds if {one.name for one in found} != {search.name}])
        searched = len(rounds) < len(dialogue.rounds)
        dialogue = msgspec.structs.replace(dialogue, rounds=rounds)
        if not searched and not plan_rounds(dialogue.question, tools) and not is_small_talk(dialogue.question):
            return Reply(text=_LOOKING, calls=(_call(dialogue, 0, Intent(search, dialogue.question)),))
    plan = plan_rounds(dialogue.question, tools, parallel=dialogue.parallel)
    intents = _next_intents(dialogue, tools, plan)
    thinks = dialogue.reasoning or _THINK.search(dialogue.question) is not None
    if intents:
        calls = tuple(_call(dialogue, at, intent) for at, intent in enumerate(intents))
        thought = _thought(dialogue, plan, intents) if thinks else ""
        return Reply(text=_announcement(dialogue, plan), calls=calls, reasoning=thought)
    results = [result for found in dialogue.rounds for result in found]
    if results:
        thought = "The results are in, so I can answer." if thinks else ""
        return Reply(text=_summary(results), reasoning=thought)
    thought = "No tool is needed here, so I answer directly." if thinks else ""
    if dialogue.pictures and _SEE.search(dialogue.question) and (seen := description(dialogue.pictures)):
        return Reply(text=seen, reasoning=thought)
    return Reply(text=answer(dialogue.question), reasoning=thought)


def _callable(dialogue: Dialogue) -> tuple[OfferedTool, ...]:
    if dialogue.choice == "none":
        return ()
    if dialogue.forced is not None:
        return tuple(tool for tool in dialogue.tools if tool.name == dialogue.forced)
    return dialogue.tools


def _next_intents(dialogue: Dialogue, tools: tuple[OfferedTool, ...], plan: Plan) -> tuple[Intent, ...]:
    done = len(dialogue.rounds)
    if done < len(plan):
        return plan[done]
    if tools and (dialogue.choice == "required" or dialogue.forced is not None):
        harmless = [tool for tool in tools if not changes_files(tool)] or tools
        final = next((tool for tool in harmless if _FINAL.search(tool.name)), harmless[0])
        return (Intent(final, dialogue.question),)
    return ()


def _call(dialogue: Dialogue, position: int, intent: Intent) -> PlannedCall:
    seed = f"{dialogue.turn}\0{len(dialogue.rounds)}\0{position}\0{dialogue.question}"
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
    arguments = absolute_paths(intent.arguments(), intent.tool.parameters, dialogue.folder)
    return PlannedCall(f"call_{digest[:16]}", intent.tool.name, arguments)


def _thought(dialogue: Dialogue, plan: Plan, intents: Iterable[Intent]) -> str:
    names = " and ".join(intent.tool.name for intent in intents)
    step = f"Step {len(dialogue.rounds) + 1} of {max(len(plan), len(dialogue.rounds) + 1)}: "
    return f"{step}the question is best served by {names}."


def _announcement(dialogue: Dialogue, plan: Plan) -> str:
    if len(plan) < 2:
        return ""
    return f"Step {len(dialogue.rounds) + 1} of {len(plan)}."


def _summary(results: list[Result]) -> str:
    lines = [_line(result) for result in results]
    if len(lines) == 1:
        return lines[0]
    return "Here is what I found:\n" + "\n".join(f"{at}. {line}" for at, line in enumerate(lines, 1))


def _line(result: Result) -> str:
    text = quotation(result.text if len(result.text) <= QUOTED else f"{result.text[:QUOTED]} [...]")
    output = f"\n{text}" if text.startswith("> ") else f" {text}"
    if result.is_error or re.match(r"\s*(?:error|failed)\b", result.text, re.I):
        return f"{result.name} failed:{output}"
    return f"{result.name} says:{output}" if text else f"{result.name} gave an empty result."
