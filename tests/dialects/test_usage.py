import functools

import pytest

from adapters.anthropic_messages import usage as messages
from adapters.anthropic_messages.backend.decoder import MessagesDecoder
from adapters.gemini import usage as gemini
from adapters.openai.usage import usage_object
from adapters.openai_responses import usage as responses
from gateway.core.answer import merge_usage
from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts, usage_note, usage_part
from gateway.testing.replay import replay
from tests.adapters.anthropic_messages.backend.wires import TEXT, block, end, sse, start, text


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


_CACHED: list[tuple[Json, Json, tuple[int, int, int]]] = [
    # Counts of the start and the end of a message, and the uncached, read and written tokens that then hold.
    (
        {"input_tokens": 20, "cache_read_input_tokens": 80},
        {"input_tokens": 100, "cache_read_input_tokens": 0},
        (100, 0, 0),
    ),
    ({"input_tokens": 20, "cache_creation_input_tokens": 80}, {"cache_creation_input_tokens": 0}, (20, 0, 0)),
    ({"input_tokens": 100}, {"input_tokens": 20, "cache_read_input_tokens": 80}, (20, 80, 0)),
    ({"input_tokens": 5, "cache_read_input_tokens": 80}, {"output_tokens": 7}, (5, 80, 0)),
]


@pytest.mark.parametrize(("first", "last", "counts"), _CACHED)
def test_the_end_of_a_message_corrects_the_cache_counts_of_its_start(
    first: Json, last: Json, counts: tuple[int, int, int]
) -> None:
    wire = sse(start(first), *block(0, TEXT, *text("Hello")), *end(usage=last))
    reports = [event for event in replay(MessagesDecoder(1 << 16), [wire]) if isinstance(event, UsageReport)]
    usage = functools.reduce(merge_usage, reports)
    _, read, written = counts
    made = messages.usage_object(usage)
    assert (made["input_tokens"], made["cache_read_input_tokens"], made["cache_creation_input_tokens"]) == counts
    assert usage.prompt_tokens == sum(counts)
    details = {"cached_tokens": read, "cache_write_tokens": written}
    assert responses.usage_object(usage)["input_tokens_details"] == details
    assert gemini.usage_object(usage).get("cachedContentTokenCount", 0) == read
    assert (usage_part(usage, "cached_tokens") or 0, usage_part(usage, "cache_write_tokens") or 0) == (read, written)


@pytest.mark.parametrize(
    "reported",
    [
        {"prompt_tokens_details": {"cached_tokens": 80}},
        {"prompt_token_details": {"cached_tokens": 80}},
        {"prompt_cache_hit_tokens": 80, "prompt_cache_miss_tokens": 20},
        {"cached_tokens": 80},
        {"num_cached_tokens": 80},
        {"cache_read_input_tokens": 80},
        {"prompt_tokens_details": None, "cached_tokens": 80},
        {"prompt_tokens_details": {"cached_tokens": 80}, "prompt_cache_hit_tokens": 7},
    ],
)
def test_cached_tokens_count_wherever_a_server_of_chat_completions_reports_them(reported: dict[str, Json]) -> None:
    usage = UsageReport(100, 7, 107, extra=reported)
    made = messages.usage_object(usage)
    assert (made["input_tokens"], made["cache_read_input_tokens"]) == (20, 80)
    details = {"cached_tokens": 80, "cache_write_tokens": 0}
    assert responses.usage_object(usage)["input_tokens_details"] == details
    assert gemini.usage_object(usage)["cachedContentTokenCount"] == 80
    assert usage_object(usage) == {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, **reported}


@pytest.mark.parametrize(
    "reported",
    [
        {"prompt_tokens_details": {"cache_write_tokens": 60}},
        {"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_input_tokens": 60}},
        {"prompt_tokens_details": {"cache_creation_tokens": 60}},
        {"cache_creation_input_tokens": 60, "cache_read_input_tokens": 0},
    ],
)
def test_written_tokens_count_wherever_a_server_of_chat_completions_reports_them(reported: dict[str, Json]) -> None:
    usage = UsageReport(100, 7, 107, extra=reported)
    made = messages.usage_object(usage)
    assert (made["input_tokens"], made["cache_creation_input_tokens"]) == (40, 60)
    assert responses.usage_object(usage)["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 60}


def test_reasoning_tokens_at_the_top_count() -> None:
    usage = UsageReport(10, 7, 17, extra={"reasoning_tokens": 5})
    assert messages.usage_object(usage)["output_tokens_details"] == {"thinking_tokens": 5}
    assert responses.usage_object(usage)["output_tokens_details"] == {"reasoning_tokens": 5}
    assert gemini.usage_object(usage)["thoughtsTokenCount"] == 5
