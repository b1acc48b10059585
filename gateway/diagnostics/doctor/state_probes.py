"""D24: what of an answer must come back with the next request: its reasoning, or state of the provider."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from gateway.core.conversation import Json
from gateway.diagnostics.doctor.accepting import accepts
from gateway.diagnostics.doctor.finding import Finding, broken, ok, skipped, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.question import Answer, Question
from gateway.diagnostics.doctor.requests import ASKED, ONE, WEATHER, calling, request, result, user

_KEEPER: Final = 'let the gateway keep it for clients that do not: "keeper": {"enabled": true}'
_NO_WAY: Final = "no client can go on after a call"
# What the profile of a provider that wants reasoning back has.
_ECHO: Final[Mapping[str, Any]] = {
    "reasoning": "echo_all_tool_turns",
    "reasoning_field": "reasoning_content",
    "reasoning_missing": "",
}
_REASONING: Final = "REASONING_MISSING"
_STATE: Final = frozenset({"SIGNATURE_MISSING", "STATE_INVALID"})


async def _reasoning(backend: ProbedBackend) -> Finding:
    first = await backend.ask(ONE)
    if not first.calls:
        return skipped("there was no call whose reasoning could come back")
    bare = await backend.ask(_next(first))
    if bare.rule != _REASONING:
        return ok("it need not come back" if first.reasoning else "there is none")
    if (await backend.ask(Question(_next(first).fields, changes=_ECHO))).error is None:
        advice = f"see the suggestion, or {_KEEPER}"
        return todo("reasoning must come back with a call (refused without)", advice, bare.words, _ECHO)
    if (await backend.ask(_next(first, reasoning_content=first.reasoning))).error is None:
        return todo("reasoning must come back unchanged with a call", _KEEPER, bare.words, rule=bare.rule)
    detail = "reasoning must come back with a call, and its text alone is refused, too; its state was not tried"
    return todo(detail, _KEEPER, bare.words, rule=bare.rule)


async def _state(backend: ProbedBackend) -> Finding:
    first = await backend.ask(ONE)
    if not first.calls:
        return skipped("there was no call whose state could come back")
    bare = await backend.ask(_next(first))
    if bare.rule not in _STATE:
        return ok("it need not come back")
    if (await backend.ask(_with_state(first))).error is None:
        return todo("the provider's state must come back with a call", _KEEPER, bare.words, rule=bare.rule)
    return broken("the history of a call is refused, with its state and without", _NO_WAY, bare.words)


def _next(first: Answer, **fields: Json) -> Question:
    """Returns the question that brings the results of an answer's calls, with nothing else of that answer."""
    turn = calling(*[(call.id, call.name, call.arguments or "{}") for call in first.calls])
    results = [result(call.id, "sunny, 21 degrees") for call in first.calls]
    return request(ASKED, {**turn, **fields}, *results, tools=(WEATHER,))


def _with_state(first: Answer) -> Question:
    """Returns the same with the reasoning and the state of the calls, as clients hold them."""
    listed = calling(*[(call.id, call.name, call.arguments or "{}") for call in first.calls])["tool_calls"]
    assert isinstance(listed, list)
    pairs = zip(listed, first.calls, strict=True)
    calls: list[Json] = [{**call, **made.extra} for call, made in pairs if isinstance(call, dict)]
    return _next(first, reasoning_content=first.reasoning, tool_calls=calls)


# As clients send it that keep the fields of answers which they do not know.
THOUGHT: Final = request(
    user("Say hello."),
    {"role": "assistant", "content": "Hello.", "reasoning_content": "The user wants a greeting."},
    user("Say it again."),
)
PROBES: Final = (
    Probe("D241", "reasoning", "Must reasoning come back with a call?", _reasoning, 3, ("D231",)),
    Probe("D242", "state", "Must state of the provider come back with a call?", _state, 1, ("D231",)),
    Probe(
        "D243",
        "reasoning back",
        "Is reasoning accepted in a history?",
        partial(accepts, THOUGHT, ({"reasoning": "drop"},)),
        2,
        ("D222",),
    ),
)
