import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter
from gateway.core.events import (
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.testing.conformance import CHECKS, Case, Check
from tests.adapters.openai_chat.backend.wires import call, chunk, completion, sse, usage
from tests.tiers import sample

START = ResponseStart("c1", "m")

CASES = [
    Case(
        "text",
        OpenAIChatAdapter,
        sse(
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "hm"}),
            *(chunk({"content": text}) for text in ("Grüß", " dich", "\u2028", "!")),
            chunk(finish="stop"),
            usage(),
        ),
        (
            START,
            ReasoningDelta("hm"),
            TextDelta("Grüß dich\u2028!"),
            Finish("stop", "stop"),
            UsageReport(3, 4, 7),
        ),
    ),
    Case(
        "calls",
        OpenAIChatAdapter,
        sse(
            chunk({"role": "assistant", "content": None}),
            chunk(call(0, "a", "f", "")),
            chunk(call(0, arguments='{"n":')),
            chunk(call(0, arguments=" 1}")),
            chunk(call(1, "b", "g", "")),
            chunk(finish="tool_calls"),
        ),
        (
            START,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, '{"n": 1}'),
            ToolCallStart(1, "b", "g"),
            ToolCallEnd(0),
            ToolCallDelta(1, "{}"),
            ToolCallEnd(1),
            Finish("tool_calls", "tool_calls"),
        ),
    ),
    Case(
        "whole",
        OpenAIChatAdapter,
        completion(
            {
                "role": "assistant",
                "content": "Hi",
                "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
            },
            "tool_calls",
        ),
        (
            START,
            TextDelta("Hi"),
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "{}"),
            ToolCallEnd(0),
            Finish("tool_calls", "tool_calls"),
        ),
    ),
]


@sample()
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
