"""D234 to D236, D25 and D26: results of calls in the forms in which clients send them, and histories that real clients
send and some providers refuse.

The repair of D251 and D252 leaves messages as those of D257 and D259, which are therefore asked before.
"""

from functools import partial
from typing import Any, Final

from gateway.core.conversation import Json
from gateway.diagnostics.doctor.accepting import accepts
from gateway.diagnostics.doctor.finding import Changes, Finding, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.question import Question
from gateway.diagnostics.doctor.requests import (
    CLOCK,
    WEATHER,
    assistant,
    calling,
    function,
    paris,
    request,
    result,
    system,
    user,
)

_HELLO: Final = user("Say hello in one short sentence.")
_RULE: Final = "Answer briefly."
_NAME: Final = "A-Za-z0-9_-"
_STRICT: Final[Changes] = {"alternation": "strict"}

_ASKED: Final = user("What is the weather in Paris and the time in Tokyo?")
_CALLS: Final = calling(("call_a1", "get_weather", '{"city":"Paris"}'), ("call_b2", "get_time", '{"city":"Tokyo"}'))
_SUNNY: Final = "sunny, 21 degrees"
_BOTH: Final = (WEATHER, CLOCK)
RESULT: Final = request(*paris(), tools=(WEATHER,))
REORDERED: Final = request(
    _ASKED, _CALLS, result("call_b2", "09:00"), result("call_a1", _SUNNY), tools=_BOTH, as_is=True
)
FORMS: Final = request(
    _ASKED, _CALLS, result("call_a1", [{"type": "text", "text": _SUNNY}]), result("call_b2", ""), tools=_BOTH
)


def _probe(probe_id: str, name: str, asks: str, question: Question, *remedies: Changes) -> Probe:
    most = 1 + question.as_is + len(remedies)
    needs = ("D231",) if "tools" in question.fields else ("D222",)
    return Probe(probe_id, name, asks, partial(accepts, question, remedies), most, needs)


def _history(*messages: Json, as_is: bool = False) -> Question:
    return request(*messages, as_is=as_is)


def _tools(*messages: Json, as_is: bool = False) -> Question:
    return request(*messages, tools=(WEATHER,), as_is=as_is)


def _alphabet(**limits: Any) -> Changes:
    return {"call_id": limits}


_TWICE: Final = [*paris("call_a1"), assistant("It is sunny."), *paris("call_a1")]


_DOTTED: Final = function("weather.v1.get", "Tells the weather of a city.", "city")


async def _result(backend: ProbedBackend) -> Finding:
    found = await accepts(RESULT, (), backend)
    if found.verdict == "ok" and (await backend.ask(RESULT)).calls:
        return todo("the model repeats a call whose result it has", "a client would go on for ever; see loop_guard")
    return found


_NEEDS: Final = ("D231",)


_RESULT_PROBES: Final = (
    Probe("D234", "result", "Is the result of a call accepted?", _result, 1, _NEEDS),
    Probe(
        "D235",
        "result order",
        "Are results accepted in another order than their calls?",
        partial(accepts, REORDERED, ()),
        2,
        _NEEDS,
    ),
    Probe(
        "D236",
        "result forms",
        "Are an empty result and one in parts accepted?",
        partial(accepts, FORMS, ({"tool_content": "string"},)),
        2,
        _NEEDS,
    ),
)

PROBES: Final = (
    *_RESULT_PROBES,
    _probe(
        "D253",
        "two systems",
        "Are two system messages accepted?",
        _history(system("You are a helper."), system(_RULE), _HELLO),
        {"system": "first"},
    ),
    _probe(
        "D254",
        "developer",
        "Is a developer's message accepted?",
        _history(system(_RULE, "developer"), _HELLO),
        {"developer": "system"},
    ),
    _probe(
        "D255",
        "assistant last",
        "Is an assistant's message accepted as the last one?",
        _history(_HELLO, assistant("Hello, I")),
        {"last_turn": "user"},
    ),
    _probe(
        "D256",
        "late system",
        "Is a system message accepted between turns?",
        _history(_HELLO, assistant("Hello."), system(_RULE), _HELLO),
        {"system": "first"},
    ),
    _probe(
        "D257",
        "alternation",
        "Are two messages of the user in a row accepted?",
        _history(user("My name is Ada."), _HELLO),
        _STRICT,
    ),
    _probe(
        "D258",
        "first turn",
        "Is an assistant's message accepted as the first one?",
        _history(assistant("Hello, how can I help?"), _HELLO),
        {"first_turn": "user"},
    ),
    _probe(
        "D259",
        "user after result",
        "Is a message of the user accepted right after a result?",
        _tools(*paris(), user("And what do you advise?")),
        {"user_after_tool": "bridge"},
    ),
    _probe(
        "D251",
        "orphan",
        "Is a result without its call accepted?",
        _tools(_HELLO, result("call_a1", "sunny"), as_is=True),
        _STRICT,
    ),
    _probe(
        "D252",
        "unanswered",
        "Is a call without its result accepted?",
        _tools(_HELLO, calling(("call_a1", "get_weather", '{"city":"Paris"}')), _HELLO, as_is=True),
        {"user_after_tool": "bridge"},
        _STRICT,
    ),
    _probe(
        "D261",
        "long ids",
        "Are ids of 64 characters accepted?",
        _tools(*paris("call_" + "a1" * 29 + "z")),
        _alphabet(longest=40),
        _alphabet(characters="A-Za-z0-9", shortest=9, longest=9),
    ),
    _probe(
        "D262",
        "colon ids",
        "Are ids with dots and colons accepted?",
        _tools(*paris("functions.get_weather:0")),
        _alphabet(characters=_NAME),
        _alphabet(characters="A-Za-z0-9", shortest=9, longest=9),
    ),
    _probe(
        "D263",
        "repeated ids",
        "Is the same id accepted in two rounds?",
        _tools(*_TWICE, as_is=True),
    ),
    _probe(
        "D264",
        "tool names",
        "Is a tool's name with dots accepted?",
        request(*paris(name="weather.v1.get"), tools=(_DOTTED,)),
        {"tool_names": {"characters": _NAME, "longest": 64}},
    ),
)
