"""D234 to D236: whether results of calls are accepted in the forms in which clients send them."""

from functools import partial
from typing import Final

from gateway.diagnostics.doctor.accepting import accepts
from gateway.diagnostics.doctor.finding import Finding, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.requests import CLOCK, WEATHER, calling, paris, request, result, user

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


async def _result(backend: ProbedBackend) -> Finding:
    found = await accepts(RESULT, (), backend)
    if found.verdict == "ok" and (await backend.ask(RESULT)).calls:
        return todo("the model repeats a call whose result it has", "a client would go on for ever; see loop_guard")
    return found


_NEEDS: Final = ("D231",)
PROBES: Final = (
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
