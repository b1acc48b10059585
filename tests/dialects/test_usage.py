import pytest

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.anthropic_messages import usage as messages
from gateway.dialects.gemini import usage as gemini
from gateway.dialects.openai_responses import usage as responses
from gateway.dialects.openai_usage import usage_object
from gateway.dialects.usage import merge_usage, token_counts, usage_note


@pytest.mark.parametrize(
    ("report", "counts", "remark"),
    [
        (UsageReport(1, 2, 3), (1, 2, 3), None),
        (UsageReport(1, 2), (1, 2, 3), None),
        (UsageReport(1, None, 3), (1, 2, 3), None),
        (UsageReport(None, 2, 3), (1, 2, 3), None),
        (UsageReport(None, 5, 3), (0, 5, 3), None),
        (UsageReport(total_tokens=3), (0, 0, 3), "total_only"),
        (UsageReport(1), (1, 0, 1), "partial"),
        (UsageReport(None, 2), (0, 2, 2), "partial"),
        (UsageReport(), (0, 0, 0), "partial"),
        (UsageReport(1, 2, 3, estimated=True), (1, 2, 3), "estimated"),
    ],
)
def test_counts_and_how_far_to_trust_them(
    report: UsageReport, counts: tuple[int, int, int], remark: str | None
) -> None:
    assert token_counts(report) == tuple(usage_object(report).values()) == counts
    assert usage_note(report) == remark


def test_later_counts_complete_earlier_ones() -> None:
    first = merge_usage(None, UsageReport(5, extra={"a": 1}))
    assert merge_usage(first, UsageReport(None, 7, extra={"b": 2})) == UsageReport(5, 7, extra={"a": 1, "b": 2})
    assert merge_usage(first, UsageReport(6)).prompt_tokens == 6


@pytest.mark.parametrize(
    "reported",
    [
        {"prompt_tokens_details": {"cached_tokens": 80}},
        {"prompt_token_details": {"cached_tokens": 80}},
        {"prompt_cache_hit_tokens": 80, "prompt_cache_miss_tokens": 20},
        {"cached_tokens": 80},
        {"num_cached_tokens": 80},
        {"prompt_tokens_details": None, "cached_tokens": 80},
        {"prompt_tokens_details": {"cached_tokens": 80}, "prompt_cache_hit_tokens": 7},
    ],
)
def test_cached_tokens_count_wherever_a_server_of_chat_completions_reports_them(reported: dict[str, Json]) -> None:
    usage = UsageReport(100, 7, 107, extra=reported)
    made = messages.usage_object(usage)
    assert (made["input_tokens"], made["cache_read_input_tokens"]) == (20, 80)
    assert responses.usage_object(usage)["input_tokens_details"] == {"cached_tokens": 80}
    assert gemini.usage_object(usage)["cachedContentTokenCount"] == 80
    assert usage_object(usage) == {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, **reported}


def test_reasoning_tokens_at_the_top_count() -> None:
    usage = UsageReport(10, 7, 17, extra={"reasoning_tokens": 5})
    assert messages.usage_object(usage)["output_tokens_details"] == {"thinking_tokens": 5}
    assert responses.usage_object(usage)["output_tokens_details"] == {"reasoning_tokens": 5}
    assert gemini.usage_object(usage)["thoughtsTokenCount"] == 5
