"""One loop reads every wire whose events are JSON: what it guards, and what it says of the end."""

import json
from collections.abc import Iterator

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTruncated
from gateway.core.events import Event, Finish, ResponseStart, TextDelta
from gateway.core.malformed_event import LATE_FAULT, TAIL_BROKEN, invalid_event
from gateway.core.notices import Notice
from gateway.testing.replay import cuttings, replay
from gateway.wires.event_stream import EVENTS_PER_RESPONSE, EventStream, FastPath, StreamEnd

MAX_EVENT = 200
LATE = Notice("backend", "ignored", "LATE_EVENT", "late")
START = ResponseStart()
STOP = Finish("stop", "end")


class Words:
    """Reads words: the first is `begin`, `end` finishes, an object is an error."""

    def __init__(self) -> None:
        self.finished = False
        self.done = False

    def event(self, document: Json, /) -> list[Event]:
        if document == {"error": "refused"}:
            raise BackendRejected("refused")
        if not isinstance(document, str):
            raise invalid_event("it is no word")
        if document == "begin":
            return [START]
        if document == "end":
            self.finished = True
            return [STOP]
        return [] if self.finished else [TextDelta(document)]

    def end(self, where: StreamEnd) -> list[Event]:
        if where == "mark":
            self.finished = True
            return [Finish("stop", "mark")]
        raise BackendTruncated(where)

    def late(self) -> list[Event]:
        return [LATE]


class WordStream(EventStream):
    mark = b"[DONE]"
    max_event = MAX_EVENT

    def begin(self) -> tuple[Words, FastPath]:
        return Words(), self.fast

    def fast(self, frames: Iterator[bytes], events: list[Event]) -> bytes | None:
        for frame in frames:
            if frame != b'"fast"':
                return frame
            events.append(TextDelta("fast"))
        return None

    def document(self, body: bytes) -> list[Event]:
        return [START, TextDelta(body.decode().strip()), STOP]


def wire(*words: Json, last: bytes = b"data: [DONE]\n\n") -> bytes:
    return b"".join(b"data: " + json.dumps(word).encode() + b"\n\n" for word in ("begin", *words)) + last


def played(data: bytes) -> list[Event]:
    """The events behind the first one of the response, which do not depend on how its bytes are cut."""
    expected = replay(WordStream(), [data])
    for cutting in cuttings(data):
        assert replay(WordStream(), cutting) == expected
    start, *others = expected
    assert start == START
    return others


def together(data: bytes) -> list[Event]:
    """The events behind the first one of bytes that come in one read."""
    return replay(WordStream(), [data])[1:]


def failure(data: bytes) -> BackendError:
    with pytest.raises(BackendError) as caught:
        replay(WordStream(), [data])
    return caught.value


def test_events_are_read_in_their_order_on_both_paths() -> None:
    words = [TextDelta(word) for word in ("fast", "a", "fast", "fast", "b")]
    assert played(wire("fast", "a", "fast", "fast", "b", "end")) == [*words, STOP]


def test_a_fault_keeps_the_events_before_it_and_names_the_event() -> None:
    error = failure(wire("a", {}))
    assert isinstance(error, BackendProtocolError)
    assert error.events == (START, TextDelta("a"))
    assert [notice.rule for notice in error.notices] == ["MALFORMED_EVENT"]


def test_no_fault_behind_the_finish_fails_the_response() -> None:
    assert played(wire("end", {}, "a")) == [STOP, LATE_FAULT]
    assert played(wire("end", last=b'data: {"')) == [STOP, TAIL_BROKEN]


def test_no_error_in_the_tail_behind_the_finish_fails_the_response() -> None:
    """The last event lacks its blank line; whoever drives the decoder alone gets the answer, too."""
    stream = WordStream()
    stream.feed(b'data: "begin"\n\ndata: "end"\n\ndata: {"error":"refused"}')
    assert stream.close() == [LATE_FAULT]


def test_what_follows_the_mark_is_reported() -> None:
    assert together(wire("end") + wire("a")) == [STOP, LATE]


def test_a_mark_may_finish_a_response() -> None:
    assert played(wire("a")) == [TextDelta("a"), Finish("stop", "mark")]
    assert played(wire("a", last=b"data: [DONE]")) == [TextDelta("a"), Finish("stop", "mark")]


@pytest.mark.parametrize(
    ("last", "where"),
    [
        (b"", "bytes"),
        (b": bye\n\n", "bytes"),
        (b'data: "b"', "event"),
        (b"data: ", "event"),
        (b'data: "b', "half event"),
    ],
)
def test_the_end_of_the_bytes_says_where_it_is(last: bytes, where: str) -> None:
    error = failure(wire("a", last=last))
    assert isinstance(error, BackendTruncated) and error.message == where
    assert error.events == ((TextDelta("b"),) if last == b'data: "b"' else ())


def test_an_event_that_is_too_large_fails_the_response_that_is_not_done() -> None:
    large = b"data: " + b"x" * 2 * MAX_EVENT + b"\n\n"
    error = failure(wire("a", last=large))
    assert (error.code, error.events) == ("upstream_event_too_large", (START, TextDelta("a")))
    assert together(wire("end") + large) == [STOP]


@pytest.mark.parametrize("body", [b'{"a": 1}', b"[1]"])
def test_a_document_is_read_at_its_end(body: bytes) -> None:
    assert played(b"\xef\xbb\xbf \r\n" + body) == [TextDelta(body.decode()), STOP]
    assert played(body + b" " * (EVENTS_PER_RESPONSE * MAX_EVENT - len(body)))
    assert failure(body + b" " * EVENTS_PER_RESPONSE * MAX_EVENT).code == "upstream_response_too_large"


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_a_response_without_content_is_no_answer(body: bytes) -> None:
    error = failure(body)
    assert isinstance(error, BackendTruncated) and error.code == "upstream_invalid_response"
