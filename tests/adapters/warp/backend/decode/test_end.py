import pytest

from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.core.conversation import Conversation, JsonObject, Text, Turn
from gateway.core.errors import BackendRejected, BackendTruncated
from gateway.core.events import (
    Finish,
    ResponseStart,
    TextDelta,
    UsageReport,
)
from gateway.testing.events import fold, join
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    acts,
    add,
    decode,
    decoder,
    finished,
    frame,
    heard,
    init,
    mcp_call,
    more,
    output,
    rules,
)


def test_the_total_of_a_continued_conversation_is_marked_as_an_estimate() -> None:
    carried: JsonObject = {"extra_content": {"warp": {"conversation_id": "c1"}}}
    asked = Conversation((Turn("assistant", (Text("a"),), extra=carried), Turn("user", (Text("b"),))))
    totals = {"warp_token_usage": {"a": {"total_tokens": 5}}}
    wire = PRELUDE + acts(add(output("a"))) + finished(done={}, conversation_usage_metadata=totals)
    assert fold(decode(wire, asked, encoding="structured")).usage == UsageReport(total_tokens=5, estimated=True)
    assert fold(decode(wire, asked)).usage == UsageReport(total_tokens=5)
    assert fold(decode(wire, encoding="structured")).usage == UsageReport(total_tokens=5)


@pytest.mark.parametrize("head", [b"", init(), PRELUDE, PRELUDE + acts(BEGIN, add(output("a"), mcp_call()), COMMIT)])
def test_an_end_without_a_finish_is_truncation(head: bytes) -> None:
    with pytest.raises(BackendTruncated):
        decode(head)


@pytest.mark.parametrize("body", [b"", b": quiet\n\n", b"data:\n\n", frame(ResponseEvent()), b"data: [DONE]\n\n"])
def test_an_end_without_anything_is_no_answer(body: bytes) -> None:
    with pytest.raises(BackendTruncated) as caught:
        decode(body)
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_response")


def test_half_an_event_is_a_truncated_answer() -> None:
    with pytest.raises(BackendTruncated) as caught:
        decode(init()[:-8])
    assert caught.value.code == "upstream_stream_truncated"


def test_a_last_frame_without_its_blank_line_counts() -> None:
    assert fold(decode(PRELUDE + acts(add(output("a"))) + DONE.rstrip(b"\n"))).finish == Finish("stop", "done")


def test_nothing_follows_the_finish() -> None:
    events = decode(PRELUDE + acts(add(output("a"))) + DONE + acts(more("b")) + DONE + b"data:%%%\n\n")
    assert fold(events).text == "a"
    assert events[-2:] == [Finish("stop", "done"), events[-1]]
    assert rules(events) == ["LATE_EVENT"]


def test_done_is_true_from_the_finish_on() -> None:
    machine = decoder()
    seen = [(machine.feed(wire), machine.done)[1] for wire in (PRELUDE, acts(add(output("a"))), DONE)]
    assert seen == [False, False, True]
    assert machine.close() == []


def test_an_answer_without_output_is_empty_or_an_error() -> None:
    assert [event for event in decode(PRELUDE + DONE) if isinstance(event, Finish)] == [Finish("stop", "done")]
    with pytest.raises(BackendRejected) as caught:
        decode(PRELUDE + DONE, empty_answer="error")
    assert caught.value.code == "upstream_empty_answer"


def test_the_token_limit_ends_with_length() -> None:
    assert heard(decode(PRELUDE + acts(add(output("a"))) + finished(max_token_limit={})))[-1] == Finish(
        "length", "max_token_limit"
    )


def test_usage_comes_before_the_finish() -> None:
    events = decode(PRELUDE + acts(add(output("a"))) + finished(done={}, token_usage=[{"total_input": 7, "output": 2}]))
    assert events[-2:] == [UsageReport(7, 2, 9), Finish("stop", "done")]


def test_pruned_media_are_noted() -> None:
    events = decode(PRELUDE + acts(add(output("a"))) + finished(done={}, pruned_media={"pruned_count": 2}))
    assert rules(events) == ["MEDIA_PRUNED"]


def test_a_second_init_is_ignored() -> None:
    events = decode(init() + init("c2", "r2") + acts(add(output("a"))) + DONE)
    assert (events[0], rules(events)) == (ResponseStart("r1"), ["LATE_INIT"])


def test_an_answer_may_begin_without_an_init() -> None:
    assert join(decode(acts(add(output("a"))) + DONE))[:2] == [ResponseStart(None), TextDelta("a")]
