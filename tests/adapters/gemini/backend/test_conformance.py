"""The adapter kit over a stream, a stream with calls and thoughts, and a whole response."""

import json

import pytest

from adapters.gemini.backend import GeminiAdapter
from gateway.core.events import (
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
from gateway.core.notices import Notice
from gateway.core.provider_state import with_provider_state
from gateway.testing.conformance import CHECKS, Case, Check
from tests.adapters.gemini.backend.wires import call, chunk, sse, text, usage
from tests.tiers import sample

START = ResponseStart("r", "m")
STATE = with_provider_state("google", {"thought_signature": "c2ln"})

CASES = [
    Case(
        "text",
        GeminiAdapter,
        sse(
            chunk(text("hm", thought=True)),
            *(chunk(text(said)) for said in ("Grüß", " dich", "\u2028", "!")),
            chunk(text("", thoughtSignature="c2ln"), finish="STOP", **usage(thoughts=2)),
        ),
        (
            START,
            ReasoningDelta("hm"),
            TextDelta("Grüß dich\u2028!"),
            ReasoningEnd(STATE),
            Finish("stop", "STOP"),
            UsageReport(3, 6, 9, extra={"completion_tokens_details": {"reasoning_tokens": 2}}),
        ),
    ),
    Case(
        "calls",
        GeminiAdapter,
        sse(
            chunk(call("f", {"n": 1}, "a", thoughtSignature="c2ln")),
            chunk(call("g", {})),
            chunk(text(""), finish="STOP"),
        ),
        (
            START,
            ToolCallStart(0, "a", "f", extra=STATE),
            ToolCallDelta(0, '{"n":1}'),
            ToolCallEnd(0),
            Notice(
                "backend", "added", "CALL_ID_ADDED", "the backend gave a call no id", None, "call_1_1", level="debug"
            ),
            ToolCallStart(1, "call_1_1", "g"),
            ToolCallDelta(1, "{}"),
            ToolCallEnd(1),
            Finish("tool_calls", "STOP"),
        ),
    ),
    Case(
        "whole",
        GeminiAdapter,
        json.dumps(chunk(text("Hi"), call("f", {}, "a"), finish="STOP", **usage())).encode(),
        (
            START,
            TextDelta("Hi"),
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "{}"),
            ToolCallEnd(0),
            Finish("tool_calls", "STOP"),
            UsageReport(3, 4, 7),
        ),
    ),
]


@sample()
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
