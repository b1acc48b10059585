"""The error of each response that failed, and of each event that cannot be read."""

from collections.abc import Sequence
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.core.events import TextDelta
from tests.adapters.openai_responses.backend.reading import START, failure
from tests.adapters.openai_responses.backend.wires import (
    WireEvent,
    added,
    call,
    created,
    delta,
    done,
    message,
    sse,
    streamed,
    text_events,
)

FAILED: Final[Json] = {"code": "server_error", "message": "It broke."}


@pytest.mark.parametrize(
    ("event", "status", "code"),
    [
        ({"type": "error", "code": "server_error", "message": "It broke."}, 502, "upstream_error"),
        ({"type": "error", "error": FAILED}, 502, "upstream_error"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "x"}, 429, "rate_limit_exceeded"),
        ({"type": "error", "code": "server_is_overloaded", "message": "x"}, 503, "upstream_overloaded"),
        ({"type": "error", "error": {"code": "slow_down"}}, 503, "upstream_overloaded"),
        ({"error": {"type": "insufficient_quota", "message": "x"}}, 429, "insufficient_quota"),
        ({"type": "response.failed", "response": {"status": "failed", "error": FAILED}}, 502, "upstream_error"),
        ({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded"}}}, 400,
         "context_length_exceeded"),
        ({"type": "response.failed"}, 502, "upstream_error"),
        ({"type": "response.cancelled", "response": {"status": "cancelled"}}, 502, "upstream_error"),
        ({"type": "response.completed", "response": {"status": "failed", "error": FAILED}}, 502, "upstream_error"),
    ],
)  # fmt: skip
def test_a_failure_inside_a_stream(event: WireEvent, status: int, code: str) -> None:
    started = [added(0, message()), delta("output_text", 0, "a", content_index=0)]
    error = failure(sse(created(), *started, event))
    assert error is not None
    assert (error.status, error.code, error.events) == (status, code, (START, TextDelta("a")))


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"status": "failed", "output": [], "error": {"code": "rate_limit_exceeded"}}', 429, "rate_limit_exceeded"),
        (b'{"status": "cancelled", "output": []}', 502, "upstream_error"),
        (b'{"error": {"message": "It broke."}}', 502, "upstream_error"),
        (b'{"id": "r1", "status": "completed"}', 502, "upstream_invalid_response"),
        (b'{"id": "r1", "output": []}', 502, "upstream_invalid_response"),
        (b"[]", 502, "upstream_invalid_event"),
        (b'{"status": "completed", "output": [7]}', 502, "upstream_invalid_event"),
    ],
)
def test_a_failure_of_a_whole_response(body: bytes, status: int, code: str) -> None:
    error = failure(body)
    assert error is not None and (error.status, error.code) == (status, code)


@pytest.mark.parametrize(
    "events",
    [
        [added(0, message()), added(0, message())],
        [*text_events(0, "a"), done(0, message("a"))],
        [*text_events(0, "a"), delta("output_text", 0, "b", content_index=0)],
        [added(0, call(name=None)), delta("function_call_arguments", 0, "{")],
        [added(0, message()), {"type": "response.output_text.delta", "delta": "x", "content_index": 0}],
        [added(0, message()), delta("output_text", 0, "x", content_index=-1)],
        [added(0, message()), delta("output_text", 0, "x", content_index=True)],
        [added(0, message()), {**delta("output_text", 0, "", content_index=0), "delta": None}],
        [{"type": "response.output_item.added", "output_index": 0}],
        [{"type": "response.output_item.added", "output_index": 0, "item": {}}],
        [{"type": "response.completed"}],
    ],
)
def test_events_that_break_the_grammar_are_an_error(events: Sequence[WireEvent]) -> None:
    error = failure(streamed(*events))
    assert error is not None and (error.status, error.code) == (502, "upstream_invalid_event")
    assert [notice.rule for notice in error.notices] == ["MALFORMED_EVENT"]


@pytest.mark.parametrize("data", [b"[]", b"7", b"{}", b'{"type": 7}', b"{no json"])
def test_data_that_is_no_event_is_an_error(data: bytes) -> None:
    error = failure(sse(created()) + b"data: " + data + b"\n\n")
    assert error is not None and error.code == "upstream_invalid_event"
