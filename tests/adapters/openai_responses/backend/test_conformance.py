from typing import Final

import pytest

from adapters.openai_responses.backend import OpenAIResponsesAdapter
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
from tests.adapters.openai_responses.backend.wires import (
    added,
    call,
    call_events,
    created,
    delta,
    done,
    ended,
    message,
    reasoning,
    sse,
    text_events,
    usage,
    whole,
)
from tests.tiers import sample

START: Final = ResponseStart("r1", "m")
STATE: Final = with_provider_state("openai", {"id": "rs_1", "encrypted_content": "e"})
COUNTED: Final = UsageReport(
    3,
    4,
    7,
    extra={"prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 2}},
)

CASES = [
    Case(
        "text",
        OpenAIResponsesAdapter,
        sse(created(), *text_events(0, "Grüß", " dich", "\u2028", "!"), ended(usage=usage())),
        (START, TextDelta("Grüß dich\u2028!"), COUNTED, Finish("stop", "completed")),
    ),
    Case(
        "reasoning",
        OpenAIResponsesAdapter,
        sse(
            created(),
            added(0, reasoning()),
            delta("reasoning_summary_text", 0, "hm", summary_index=0),
            done(0, reasoning(["hm"], encrypted_content="e")),
            *text_events(1, "Hi"),
            ended(),
        ),
        (START, ReasoningDelta("hm"), ReasoningEnd(STATE), TextDelta("Hi"), Finish("stop", "completed")),
    ),
    Case(
        "calls",
        OpenAIResponsesAdapter,
        sse(created(), *call_events(0, '{"n":', " 1}"), *call_events(1, "{}", name="g", call_id="b"), ended()),
        (
            START,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, '{"n": 1}'),
            ToolCallEnd(0),
            ToolCallStart(1, "b", "g"),
            ToolCallDelta(1, "{}"),
            ToolCallEnd(1),
            Finish("stop", "completed"),
        ),
    ),
    Case(
        "whole",
        OpenAIResponsesAdapter,
        whole(reasoning((), ["hm"]), message("Hi"), call("{}"), usage=usage()),
        (
            START,
            ReasoningDelta("hm"),
            TextDelta("Hi"),
            ToolCallStart(2, "a", "f"),
            ToolCallDelta(2, "{}"),
            ToolCallEnd(2),
            COUNTED,
            Finish("stop", "completed"),
        ),
    ),
]


@sample()
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
