"""Runs the conformance kit on every invented service, over several carriers each."""

from typing import Any

import pytest

from adapters.proto.backend import ProtoAdapter
from gateway.core.conversation import Conversation, JsonObject, Text, ToolSpec, Turn
from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Level, Notice
from gateway.testing import decode_checks, encode_checks
from gateway.testing.conformance import CHECKS, Case, Check
from tests.adapters.proto.backend.mappings import MAPPINGS
from tests.adapters.proto.backend.services import ANSWERS, WRITERS, answer
from tests.tiers import sample

LOOK: JsonObject = {"type": "object", "properties": {"at": {"type": "string"}, "depth": {"type": "integer"}}}
TOOLS = (ToolSpec("look", parameters=LOOK), ToolSpec("walk"))
ASKED = Conversation((Turn("user", (Text("Where?"),), index=0),), TOOLS, model="model", stream=True)


def added(call: str, level: Level = "debug") -> Notice:
    return Notice("backend", "added", "CALL_ID_ADDED", "the backend gave a call no id", None, call, level)


TALK: tuple[Event, ...] = (
    ResponseStart(),
    TextDelta("Good morning, 日本."),
    UsageReport(3, 5, 8),
    Finish("stop", "ENDING_DONE"),
)
PARTS: tuple[Event, ...] = (
    ResponseStart("r1", "parts-1"),
    ReasoningDelta("Hm."),
    TextDelta("Look: "),
    ToolCallStart(0, "c1", "look"),
    ToolCallDelta(0, '{"at":"x","depth":3}'),
    ToolCallEnd(0),
    added("call_1_1", "warning"),
    ToolCallStart(1, "call_1_1", "walk"),
    ToolCallDelta(1, "{}"),
    ToolCallEnd(1),
    UsageReport(7, 9, 16, extra={"completion_tokens_details": {"reasoning_tokens": 2}}),
    Finish("stop", "fully"),
)
DELTAS: tuple[Event, ...] = (
    ResponseStart(),
    ReasoningDelta("Hm."),
    TextDelta("日本"),
    ToolCallStart(0, "c1", "look"),
    ToolCallDelta(0, '{"at"'),
    ToolCallStart(1, "c2", "walk"),
    ToolCallDelta(0, ': "日"}'),
    ToolCallEnd(0),
    ToolCallDelta(1, "{}"),
    ToolCallEnd(1),
    UsageReport(None, 9),
    Finish("tool_calls", "tool_calls"),
)
RELAY: tuple[Event, ...] = (
    ResponseStart("r1", "relay-1"),
    ReasoningDelta("Hm."),
    TextDelta("日本"),
    ToolCallStart(0, "c1", "look"),
    ToolCallDelta(0, '{"at": "日"}'),
    ToolCallEnd(0),
    UsageReport(7, 9, 16),
    Finish("tool_calls", "tool_calls"),
)
FORMS: tuple[Event, ...] = (
    ResponseStart(None, "forms-1"),
    ReasoningDelta("Hm."),
    ReasoningEnd({"extra_content": {"acme": {"seal": "bWluZA=="}}}),
    TextDelta("Look: "),
    ToolCallStart(0, "c1", "look", extra={"extra_content": {"acme": {"seal": "c2VhbGVk"}}}),
    ToolCallDelta(0, '{"at":"7","depth":3}'),
    ToolCallEnd(0),
    UsageReport(7, 9, 16),
    Finish("stop", "halt"),
)
TENSORS: tuple[Event, ...] = (
    ResponseStart(),
    TextDelta("Good morning, 日本."),
    UsageReport(None, 4),
    Finish("length", "length"),
)

LISTS: tuple[Event, ...] = (
    ResponseStart(None, "lists-1"),
    TextDelta("Look: 日本"),
    added("call_1_0"),
    ToolCallStart(0, "call_1_0", "look"),
    ToolCallDelta(0, '{"at":"x"}'),
    ToolCallEnd(0),
    added("call_1_1"),
    ToolCallStart(1, "call_1_1", "walk"),
    ToolCallDelta(1, "{}"),
    ToolCallEnd(1),
    UsageReport(7, 9, 16),
    Finish("tool_calls", "TOOL_CALLS"),
)
SINGLE: tuple[Event, ...] = (
    ResponseStart(),
    TextDelta("Look: 日本"),
    added("call_1_0"),
    ToolCallStart(0, "call_1_0", "look"),
    ToolCallDelta(0, '{"at": "日"}'),
    ToolCallEnd(0),
    UsageReport(7, 9, 16),
    Finish("tool_calls", "function_call"),
)
EXPECTED = {
    "talk": TALK,
    "parts": PARTS,
    "deltas": DELTAS,
    "relay": RELAY,
    "forms": FORMS,
    "tensors": TENSORS,
    "lists": LISTS,
    "single": SINGLE,
}
ONCE = answer("talk", {"soFar": "Once.", "ending": "ENDING_FULL"})


def case(service: str, carrier: str, **options: Any) -> Case:
    conversation = ASKED if service not in ("talk", "tensors") else Case("", ProtoAdapter, b"").conversation
    return Case(
        f"{service}-{carrier}",
        ProtoAdapter,
        WRITERS[carrier](ANSWERS[service]),
        EXPECTED[service],
        conversation,
        options={**MAPPINGS[service], "carrier": carrier, **options},
        trailers={"grpc-status": "0"} if carrier == "grpc" else {},
    )


ONE = {**MAPPINGS["talk"], "method": "acme.talk.v1.Talk/SpeakOnce"}
ONE_EVENTS: tuple[Event, ...] = (ResponseStart(), TextDelta("Once."), Finish("length", "ENDING_FULL"))
# Each mapping over one carrier, and the other carriers: they frame the same messages.
CASES = [case(service, "grpc") for service in MAPPINGS]
CARRIERS = [
    case("talk", "grpc_web"),
    case("talk", "sse_base64"),
    case("talk", "frames_u32"),
    case("parts", "connect"),
    case("parts", "frames_u32"),
    # Its requests are base64, in which the kit finds no words.
    case("parts", "grpc_web_text"),
    case("deltas", "frames_varint"),
    case("deltas", "grpc_web"),
    case("relay", "connect"),
    case("relay", "grpc_web"),
    case("forms", "grpc_web"),
    case("forms", "frames_varint"),
    case("tensors", "grpc_web"),
    case("tensors", "sse_base64"),
    case("lists", "connect"),
    case("single", "grpc_web"),
    *(
        Case(f"once-{carrier}", ProtoAdapter, wire, ONE_EVENTS, options={**ONE, "carrier": carrier})
        for carrier, wire in (("body", ONCE), ("connect", ONCE), ("grpc_web", WRITERS["grpc_web"]([ONCE])))
    ),
]
FRAMED = (*decode_checks.CHECKS, encode_checks.request_is_well_formed, encode_checks.request_is_readable)


@sample()
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_protobuf_backends_conform(case: Case, check: Check) -> None:
    check(case)


@sample()
@pytest.mark.parametrize("check", FRAMED)
@pytest.mark.parametrize("case", CARRIERS, ids=str)
def test_other_carriers_conform(case: Case, check: Check) -> None:
    check(case)
