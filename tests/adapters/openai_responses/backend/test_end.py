"""How a response ends: complete, incomplete or cut, with its token counts."""

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import BackendTruncated
from gateway.core.events import Event, Finish, TextDelta, UsageReport
from tests.adapters.openai_responses.backend.reading import START, STOP, decoded, failure, rules
from tests.adapters.openai_responses.backend.wires import (
    WireEvent,
    added,
    created,
    delta,
    ended,
    message,
    sse,
    streamed,
    text_events,
    whole,
)


@pytest.mark.parametrize(
    ("details", "reason", "rule"),
    [
        ({"reason": "max_output_tokens"}, "length", []),
        ({"reason": "content_filter"}, "content_filter", []),
        ({"reason": "full_moon"}, "length", ["FINISH_REASON_UNKNOWN"]),
        (None, "length", ["FINISH_REASON_UNKNOWN"]),
    ],
)
@pytest.mark.parametrize("streams", [True, False])
def test_an_incomplete_response_says_why(details: Json, reason: str, rule: list[str], streams: bool) -> None:
    last = ended("incomplete", incomplete_details=details)
    wire = whole(message("a"), status="incomplete", incomplete_details=details)
    if streams:
        wire = streamed(added(0, message()), delta("output_text", 0, "a", content_index=0), last=last)
    *_, text, finish = decoded(wire)
    assert text == TextDelta("a")
    assert isinstance(finish, Finish) and (finish.reason, finish.raw) == (reason, "incomplete")
    assert rules(wire) == rule


def test_an_event_and_its_response_must_both_say_that_it_is_complete() -> None:
    last: WireEvent = {**ended("incomplete", incomplete_details={"reason": "content_filter"})}
    assert decoded(streamed(last={**last, "type": "response.completed"}))[-1] == Finish("content_filter", "incomplete")
    for status in ("in_progress", "queued", "odd"):
        error = failure(streamed(last={**ended(status), "type": "response.completed"}))
        assert error is not None and error.code == "upstream_invalid_response"
        error = failure(whole(message("a"), status=status))
        assert error is not None and error.code == "upstream_invalid_response"
    wrong: list[Json] = [[], {}, 1]
    for value in wrong:
        error = failure(streamed(last={"type": "response.completed", "response": {"status": value}}))
        assert error is not None and error.code == "upstream_invalid_response"


@pytest.mark.parametrize(
    ("usage", "report"),
    [
        ({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, UsageReport(1, 2, 3)),
        ({"input_tokens": 1.0, "output_tokens": -2, "total_tokens": "3"}, UsageReport(1)),
        ({"total_tokens": 3, "input_tokens_details": None}, UsageReport(None, None, 3)),
        (
            {"input_tokens_details": {"cached_tokens": 1}, "output_tokens_details": {"reasoning_tokens": 2}},
            UsageReport(
                extra={
                    "prompt_tokens_details": {"cached_tokens": 1},
                    "completion_tokens_details": {"reasoning_tokens": 2},
                }
            ),
        ),
        (None, None),
    ],
)
def test_usage(usage: Json, report: UsageReport | None) -> None:
    reports: list[Event] = [event for event in decoded(whole(message("a"), usage=usage)) if type(event) is UsageReport]
    assert reports == ([] if report is None else [report])


@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n", b"data: [DONE]", b": bye\n\n"])
def test_the_end_of_the_bytes_is_not_the_end_of_the_response(end: bytes) -> None:
    error = failure(sse(created(), *text_events(0, "a")) + end)
    assert isinstance(error, BackendTruncated) and error.code == "upstream_stream_truncated"
    error = failure(b": hi\n\n" + end)
    assert isinstance(error, BackendTruncated) and error.code == "upstream_invalid_response"


def test_an_end_mark_may_follow_the_response_and_nothing_else() -> None:
    wire = streamed(*text_events(0, "a"))
    assert rules(wire + b"data: [DONE]\n\n") == []
    assert rules(wire + sse(ended())) == ["LATE_EVENT"]
    assert decoded(wire + sse(ended())) == decoded(wire)


def test_silent_events_say_nothing() -> None:
    silent: list[WireEvent] = [{"type": kind} for kind in ("keepalive", "response.queued", "response.in_progress")]
    assert decoded(streamed(*silent, *text_events(0, "a"))) == [START, TextDelta("a"), STOP]
    assert rules(streamed(*silent, *text_events(0, "a"))) == []


def test_a_response_without_output_is_complete() -> None:
    assert decoded(streamed()) == [START, STOP]


def test_a_response_is_bounded() -> None:
    error = failure(b'{"output": [' + b" " * (5 << 20))
    assert error is not None and error.code == "upstream_response_too_large"
