"""D23: whether the model calls tools, and in which form the calls come."""

import re
from typing import Final

import msgspec

from gateway.core.conversation import Json, ToolCall
from gateway.core.notices import Notice
from gateway.diagnostics.doctor.accepting import failure, undeclared
from gateway.diagnostics.doctor.finding import Finding, broken, ok, remark, skipped, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.question import Answer
from gateway.diagnostics.doctor.requests import CHAT, CLOCK, ONE, USER, WEATHER, request, user
from gateway.diagnostics.doctor.wire_probes import empty_pieces

TWO: Final = request(
    user("What is the weather in Paris, and the time in Tokyo? Call both tools at once."), tools=(WEATHER, CLOCK)
)
EMPTY: Final = request(user("Who is the current user? Use get_current_user."), tools=(USER,))
NONE: Final = request(user("What is the weather in Paris?"), tools=(WEATHER,), tool_choice="none")
REQUIRED: Final = request(user("Hello!"), tools=(WEATHER,), tool_choice="required")
NAMED: Final = request(
    user("What is the weather in Paris?"),
    tools=(WEATHER, CLOCK),
    tool_choice={"type": "function", "function": {"name": "get_time"}},
)
# A named tool is then asked for by `required`, beside no other one.
_NOT_NAMED: Final = {"request_rules": {"choices": ["auto", "none", "required"]}}
# The notices of ids that the gateway mends.
_MENDED_IDS: Final = frozenset({"CALL_ID_RENAMED", "CALL_ID_ADDED"})
# The codes where a call was asked for, and the model made none that can be read.
_UNOBEYED: Final = ("upstream_invalid_answer", "upstream_invalid_tool_call")
# Some clients and databases take no longer ones.
LONGEST_ID: Final = 64
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]+")
_NONE_MADE: Final = "the model calls no tool"
_NO_CALL: Final = "the model may not be trained for tools, or its chat template drops them"
_CHANGED: Final = "the names of tools are changed on the way: clients cannot run such a call"


async def _call(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(ONE)
    if answer.refusal is not None:
        return todo(
            "tools are refused", _NO_CALL, answer.words, rule=answer.rule or "tools", facts={"facts.tools": False}
        )
    return failure(answer) or _wrong_call(answer.calls, "get_weather") or ok("one call, of the right tool")


def _wrong_call(calls: tuple[ToolCall, ...], name: str) -> Finding | None:
    """Returns the finding of calls of which the first is not one of this tool, with an object as its arguments."""
    if not calls:
        return todo(_NONE_MADE, _NO_CALL)
    called, arguments = calls[0].name, calls[0].arguments
    if called != name:
        return broken(f"it calls {called!r} and not {name!r}", _CHANGED)
    if not isinstance(_decoded(arguments), dict):
        return broken("the arguments of a call are no JSON object", "clients cannot run such a call", arguments[:200])
    return None


def _decoded(arguments: str) -> Json:
    try:
        value: Json = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return None
    return value


async def _parallel(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(TWO)
    if (failed := failure(answer) or await _callless(backend, answer)) is not None:
        return failed
    if sorted(call.name for call in answer.calls) == ["get_time", "get_weather"]:
        return ok("two calls in one answer")
    detail, advice = f"{len(answer.calls)} of two calls in one answer", "clients need one more round for each call"
    return todo(detail, advice, facts={"facts.parallel_calls": False})


async def _ids(backend: ProbedBackend) -> Finding:
    one, two = [[call.id for call in (await backend.ask(question)).calls] for question in (ONE, TWO)]
    if not one:
        return skipped("there was no call")
    events = [event for question in (ONE, TWO) for event in (await backend.ask(question)).events]
    if any(isinstance(event, Notice) and event.rule in _MENDED_IDS for event in events):
        return remark("calls have no ids, or the same; clients get ids of their own")
    if len(set(two)) < len(two):
        return todo("two calls of one answer have the same id", "clients cannot tell their results apart")
    if (longest := max(map(len, (*one, *two)))) > LONGEST_ID:
        return todo(f"an id of a call has {longest} characters", f"some clients take no ids above {LONGEST_ID}")
    if odd := next((one for one in (*one, *two) if not _PLAIN_ID.fullmatch(one)), ""):
        return remark(f"ids such as {odd!r}: some providers refuse them in a history that changes the model")
    return ok(f"ids: {len(one) + len(two)}")


async def _empty(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(EMPTY)
    found = failure(answer) or await _callless(backend, answer) or _wrong_call(answer.calls, "get_current_user")
    if found is None and backend.settings.adapter == CHAT and empty_pieces(answer):
        return remark("the arguments of a call without any come as empty text; clients get {}")
    return found or ok("its arguments are {}")


async def _none(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(NONE)
    if answer.error is None and answer.calls:
        return broken("tool_choice none is ignored: it calls a tool", undeclared(backend, "tool_choice"))
    return failure(answer) or await _callless(backend, answer) or ok("no call")


async def _required(backend: ProbedBackend) -> Finding:
    if (unasked := await _not_to_force(backend)) is not None:
        return unasked
    return _forced(backend, await backend.ask(REQUIRED), "get_weather", "required")


async def _named(backend: ProbedBackend) -> Finding:
    if (unasked := await _not_to_force(backend)) is not None:
        return unasked
    answer = await backend.ask(NAMED)
    if answer.refusal is not None and backend.capabilities.request_rules:
        tried = await backend.ask(msgspec.structs.replace(NAMED, changes=_NOT_NAMED))
        if [call.name for call in tried.calls] == ["get_time"]:
            detail = "tool_choice of a tool's name is refused, and required accepted"
            return todo(detail, "see the suggestion", answer.words, _NOT_NAMED)
    return _forced(backend, answer, "get_time", "of a tool's name")


async def _not_to_force(backend: ProbedBackend) -> Finding | None:
    """Returns the finding of a backend that refuses tools or changes their names; a model that makes no call by itself
    may still make a forced one."""
    answer = await backend.ask(ONE)
    if answer.refusal is not None:
        return skipped("tools are refused (D231)")
    wrong = _wrong_call(answer.calls, "get_weather") if answer.calls else None
    return None if wrong is None else skipped(f"{wrong.detail} (D231)")


def _forced(backend: ProbedBackend, answer: Answer, name: str, choice: str) -> Finding:
    if answer.refusal is not None or (answer.error is not None and answer.error.code in _UNOBEYED):
        return todo(f"tool_choice {choice} is refused", "do not rely on it", answer.words)
    if answer.error is None and [call.name for call in answer.calls][:1] != [name]:
        return todo(f"tool_choice {choice} is ignored", undeclared(backend, "tool_choice"))
    return failure(answer) or ok("the call")


async def _callless(backend: ProbedBackend, answer: Answer) -> Finding | None:
    """Returns the finding of a model that calls no tool at all: that is reported once."""
    if answer.calls or (await backend.ask(ONE)).calls:
        return None
    return skipped(f"{_NONE_MADE} (D231)")


_NEEDS: Final = ("D222",)
_CALLS: Final = ("D231",)
PROBES: Final = (
    Probe("D231", "call", "Does the model call a tool?", _call, 1, _NEEDS, "tools"),
    Probe("D232", "parallel calls", "Does it make two calls at once?", _parallel, 1, _CALLS, "parallel calls"),
    Probe("D265", "ids", "Has each call an id of its own, of at most 64 characters?", _ids, 0, ("D231", "D232")),
    Probe("D233", "empty call", "Does it call a tool that has no parameters?", _empty, 1, _CALLS),
    Probe("D237", "choice none", "Does tool_choice none forbid a call?", _none, 1, _CALLS),
    Probe("D238", "choice required", "Does tool_choice required force a call?", _required, 1, _NEEDS, "forced choice"),
    Probe("D239", "choice named", "Does a tool's name as tool_choice force it?", _named, 2, _NEEDS, "named choice"),
)
