"""The contents of ended requests lie in one block of memory, and are read from it as they were."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import BackendError
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead, AnswerTimes, RequestHead
from gateway.inspector.summary import TokenCounts
from gateway.registry import load_dialect
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.captured_bytes import CapturedBytes
from gateway.server.inspect.contents import ContentsStore

BLOCK: Final = 3000


def capture_of(body: bytes) -> Capture:
    capture = Capture("req-1", "POST", CapturedBytes(2**20))
    capture.read_request(body)
    return capture


def read(contents: ContentsStore, seq: int) -> Capture | None:
    reader = contents.reader(seq)
    return None if reader is None else reader()


def body_of(contents: ContentsStore, seq: int) -> bytes | None:
    found = read(contents, seq)
    return None if found is None else found.interaction(200, "", "").body


@given(st.lists(st.integers(0, BLOCK), max_size=60), st.integers(1, 20))
def test_the_newest_stay_as_they_were_and_never_take_more_than_the_block(sizes: list[int], most: int) -> None:
    contents = ContentsStore(most, BLOCK)
    bodies: dict[int, bytes] = {}
    fitting = []
    for seq, size in enumerate(sizes):
        bodies[seq] = bytes([seq]) * size
        capture = capture_of(bodies[seq])
        fitting += [seq] if len(capture.packed()) <= BLOCK else []
        contents.add(seq, capture)
        here = {one: state for one in bodies if (state := contents.state_of(one)) is not None}
        assert [*here] == fitting[len(fitting) - len(here) :] and bool(here) == bool(fitting)
        assert len(here) <= most and sum(state.bytes for state in here.values()) <= BLOCK
        assert {one: body_of(contents, one) for one in here} == {one: bodies[one] for one in here}


def test_small_ones_fill_the_block_before_the_oldest_goes() -> None:
    contents = ContentsStore(1000, BLOCK)
    size = len(capture_of(b"x" * 100).packed())
    for seq in range(100):
        contents.add(seq, capture_of(b"x" * 100))
    here = [seq for seq in range(100) if read(contents, seq) is not None]
    assert here == [*range(100 - BLOCK // size, 100)]
    contents.clear()
    assert read(contents, 99) is None and contents.state_of(99) is None


def test_everything_of_a_request_is_read_again() -> None:
    """Also numbers of more than 64 bits and half a surrogate pair, in the words of a backend."""
    dialect = load_dialect()
    capture = Capture("req-1", "POST", CapturedBytes(2**20))
    capture.begin(dialect, RequestHead("/v1/chat/completions", b"alt=sse", {b"authorization": b"Bearer a-key-of-mine"}))
    capture.read_request(b'{"model": "m"}')
    capture.receive_head(200, {"content-type": "text/event-stream"}, False)
    capture.answer_head(AnswerHead("0" * 24, 7, "m", lambda: 9)).clock()
    capture.open(200, [(b"content-type", b"text/event-stream")])
    for number in range(300):
        capture.read(b"data: %d\n\n" % number)
        capture.write(b"data: %d\n\n" % number)
    capture.keep_alive(b": ping\n\n")
    capture.note(Notice("unwrap", "failed", "ENVELOPE_BROKEN", "the tool '\ud83d'", 3, "call_1"))
    capture.fail(BackendError("broken \ud83d", extra={"limit": 2**70}))
    capture.cut("reset")
    capture.close({"grpc-status": "13"})
    capture.end()
    contents = ContentsStore(10, 2**20)
    contents.add(1, capture)
    found = read(contents, 1)
    assert found is not None and found.secrets == capture.secrets == ("a-key-of-mine",)
    tokens = TokenCounts(2**70, 1)
    assert found.interaction(502, "upstream_error", "stream", tokens) == capture.interaction(
        502, "upstream_error", "stream", tokens
    )
    assert found.texts() == capture.texts()
    failure = found.interaction(502, "", "").end
    assert failure is not None and failure.failure is not None and failure.failure.extra == {"limit": 2**70}


def test_the_times_of_an_answer_are_recorded_as_they_were_told() -> None:
    capture = Capture("req-1", "POST", CapturedBytes(2**20))
    capture.begin(load_dialect(), RequestHead("/api/chat"))
    head = capture.answer_head(AnswerHead("0" * 24, 7, "m", lambda: 9, times=lambda: AnswerTimes(1, 2, 3)))
    assert head.times() == AnswerTimes(1, 2, 3)
    answer = capture.interaction(200, "", "stream").answer
    assert answer is not None and answer.times == AnswerTimes(1, 2, 3)
