from typing import Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter
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
from gateway.core.provider_state import with_provider_state
from gateway.testing.conformance import CHECKS, Case, Check
from tests.adapters.anthropic_messages.backend.wires import (
    TEXT,
    THINKING,
    arguments,
    block,
    call,
    end,
    message,
    sse,
    start,
    text,
    thinking,
)
from tests.tiers import sample

START: Final = ResponseStart("m1", "m")
SIGNED: Final = with_provider_state("anthropic", {"signature": "s"})
ASKED: Final = UsageReport(3)
COUNTED: Final = UsageReport(3, 4)

CASES = [
    Case(
        "text",
        AnthropicMessagesAdapter,
        sse(
            start(),
            {"type": "ping"},
            *block(0, THINKING, *thinking("h", "m", signature="s")),
            *block(1, TEXT, *text("Grüß", " dich", "\u2028", "!")),
            *end(),
        ),
        (
            START,
            ASKED,
            ReasoningDelta("hm"),
            ReasoningEnd(SIGNED),
            TextDelta("Grüß dich\u2028!"),
            COUNTED,
            Finish("stop", "end_turn"),
        ),
    ),
    Case(
        "calls",
        AnthropicMessagesAdapter,
        sse(
            start(),
            *block(0, TEXT, *text("Let me see.")),
            *block(1, call("a", "f"), *arguments("", '{"n":', " 1}")),
            *block(2, call("b", "g")),
            *end("tool_use"),
        ),
        (
            START,
            ASKED,
            TextDelta("Let me see."),
            ToolCallStart(1, "a", "f"),
            ToolCallDelta(1, '{"n": 1}'),
            ToolCallEnd(1),
            ToolCallStart(2, "b", "g"),
            ToolCallDelta(2, "{}"),
            ToolCallEnd(2),
            COUNTED,
            Finish("tool_calls", "tool_use"),
        ),
    ),
    Case(
        "whole",
        AnthropicMessagesAdapter,
        message(
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}},
            reason="tool_use",
        ),
        (
            START,
            ReasoningDelta("hm"),
            ReasoningEnd(SIGNED),
            TextDelta("Hi"),
            ToolCallStart(2, "a", "f"),
            ToolCallDelta(2, '{"n":1}'),
            ToolCallEnd(2),
            COUNTED,
            Finish("tool_calls", "tool_use"),
        ),
    ),
    Case(
        "budget",
        AnthropicMessagesAdapter,
        sse(start(), *block(0, TEXT, *text("Hi")), *end("max_tokens")),
        (START, ASKED, TextDelta("Hi"), COUNTED, Finish("length", "max_tokens")),
        options={"thinking": "budget", "max_tokens": 2048},
    ),
]


@sample()
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
