"""Runs the conformance kit on the preset of the demo backend, with a response that the backend would send."""

import pytest

from adapters.proto.backend import ProtoAdapter
from adapters.proto.demo.answer import Answer
from adapters.proto.demo.response import OK, frames
from gateway.core.conversation import Conversation, Text, ToolSpec, Turn
from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.demo.scripted_model.dialogue import PlannedCall
from gateway.testing.conformance import CHECKS, Case, Check

ANSWER = Answer(
    id="demo-1",
    model="demo-grpc",
    text=("Step", " 1", " of 2: 日本."),
    reasoning=("Two", " calls."),
    calls=(
        PlannedCall("call_1", "get_weather", {"days": 3, "city": "Rome"}),
        PlannedCall("call_2", "get_time", {}),
    ),
    finish="FINISH_TOOL_CALLS",
    prompt_tokens=7,
)
EVENTS: tuple[Event, ...] = (
    ResponseStart("demo-1", "demo-grpc"),
    ReasoningDelta("Two calls."),
    TextDelta("Step 1 of 2: 日本."),
    ToolCallStart(0, "call_1", "get_weather"),
    ToolCallDelta(0, '{"city":"Rome","days":3}'),
    ToolCallStart(1, "call_2", "get_time"),
    ToolCallDelta(1, "{}"),
    ToolCallEnd(0),
    ToolCallEnd(1),
    UsageReport(7, 8, 15, extra={"completion_tokens_details": {"reasoning_tokens": 2}}),
    Finish("tool_calls", "FINISH_TOOL_CALLS"),
)
WEATHER = ToolSpec("get_weather", parameters={"type": "object", "properties": {"city": {}, "days": {}}})
ASKED = Conversation((Turn("user", (Text("Weather?"),), index=0),), (WEATHER, ToolSpec("get_time")), stream=True)
CASE = Case(
    "demo", ProtoAdapter, b"".join(frames(ANSWER)), EVENTS, ASKED, options={"preset": "demo"}, trailers=dict(OK)
)


@pytest.mark.parametrize("check", CHECKS)
def test_the_demo_backend_conforms(check: Check) -> None:
    check(CASE)
