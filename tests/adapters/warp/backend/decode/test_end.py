from typing import Any

import pytest

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.multi_agent_pb2 import Citation, Message, ResponseEvent, StreamFinished
from gateway.core.conversation import Conversation, JsonObject, Text, Turn
from gateway.core.errors import BackendRejected, BackendTruncated
from gateway.core.events import (
    Finish,
    ResponseStart,
    TextDelta,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.testing.events import fold, join
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    ROLLBACK,
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
    # The number 13 is that of the charges in the schema; in another version it is a message whose field 1 is a count.
    wire = ResponseEvent(finished={"done": {}}).SerializeToString()
    counted = ResponseEvent.FromString(wire + bytes([3 << 3 | 2, 4, 13 << 3 | 2, 2, 1 << 3, 2]))
    events = decode(PRELUDE + acts(add(output("a"))) + frame(counted))
    assert [(event.rule, event.detail) for event in events if isinstance(event, Notice)] == [
        ("MEDIA_PRUNED", "the backend left out 2 images or files")
    ]


CHARGES = {
    "primary_agent": {
        "direct_api_inference_usage": {
            "a": {"token_count": {"input": 10, "output": 2, "input_cache_read": 5, "input_cache_write": 3}},
            "b": {"token_count": {"input": 1}},
        },
        "platform_usage_in_cents": 0.5,
    },
    "compaction": {
        "byok_inference_usage": {"a": {"token_count": {"output": 4}, "web_search_count": 1}},
        "custom_endpoint_inference_usage": {"c": {"token_count": {"input_cache_read": 7}}},
    },
}


def test_the_charges_of_the_request_are_its_usage() -> None:
    totals = {"warp_token_usage": {"a": {"total_tokens": 500}}}
    fields: dict[str, Any] = {"request_charges": {"usage_by_category": CHARGES}, "conversation_usage_metadata": totals}
    events = decode(PRELUDE + acts(add(output("a"))) + finished(done={}, **fields))
    details: JsonObject = {"prompt_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 3}}
    assert fold(events).usage == UsageReport(26, 6, 32, extra=details)
    assert rules(events) == []
    exact = decode(PRELUDE + acts(add(output("a"))) + finished(done={}, token_usage=[{"output": 9}], **fields))
    assert fold(exact).usage == UsageReport(0, 9, 9)


def test_charges_without_tokens_are_no_usage() -> None:
    charges = {"usage_by_category": {"primary_agent": {"platform_usage_in_cents": 1}}}
    events = decode(PRELUDE + acts(add(output("a"))) + finished(done={}, request_charges=charges))
    assert fold(events).usage is None


def test_the_context_window_is_described_in_words_and_counts() -> None:
    segments = [
        {"segment_type": StreamFinished.SEGMENT_TOOL_DEFINITIONS, "token_count": 30},
        {"segment_type": StreamFinished.SEGMENT_SYSTEM_PROMPT, "token_count": 12},
        {"segment_type": 77, "token_count": 1},
        {"segment_type": StreamFinished.SEGMENT_TOOL_DEFINITIONS, "token_count": 5},
    ]
    said = {"context_window_usage": 0.406, "total_input_tokens": 48, "context_window_segments": segments}
    events = decode(PRELUDE + acts(add(output("a"))) + finished(done={}, conversation_usage_metadata=said))
    assert [event for event in events if isinstance(event, Notice)] == [
        Notice(
            "backend",
            "seen",
            "CONTEXT_WINDOW",
            "the conversation fills 41% of the model's context window; newest request to the model: 48 tokens; "
            "system prompt: 12 tokens; tool definitions: 35 tokens; unknown: 1 tokens",
            level="debug",
        )
    ]


@pytest.mark.parametrize("share", [0.0, -1.0, 25.0, float("nan"), float("inf")])
def test_a_share_that_is_none_is_not_told(share: float) -> None:
    wire = (
        PRELUDE
        + acts(add(output("a")))
        + finished(done={}, conversation_usage_metadata={"context_window_usage": share})
    )
    assert rules(decode(wire)) == []


def test_a_summarized_conversation_is_told_once() -> None:
    summary = Message(id="m9", task_id="t1", summarization={})
    wire = PRELUDE + acts(add(summary, output("a")))
    assert rules(decode(wire + DONE)) == ["CONVERSATION_SUMMARIZED"]
    said = finished(done={}, conversation_usage_metadata={"summarized": True})
    assert rules(decode(wire + said)) == ["CONVERSATION_SUMMARIZED"]
    assert rules(decode(PRELUDE + acts(add(output("a"))) + said)) == ["CONVERSATION_SUMMARIZED"]


def test_citations_are_counted_by_their_kind_and_never_quoted() -> None:
    page = Citation(document_id="https://secret.example", document_type=pb.DOCUMENT_WEB_PAGE)
    said = output("a")
    said.citations.extend([page, page, Citation.FromString(b"\x0a\x01x\x10\x63")])
    command = Message(id="m2", task_id="t1")
    command.tool_call.run_shell_command.citations.add(document_id="r", document_type=pb.DOCUMENT_RULE)
    undone = output("b", "m3")
    undone.citations.add(document_id="lost", document_type=pb.DOCUMENT_NOTEBOOK)
    events = decode(PRELUDE + acts(add(said), BEGIN, add(undone), ROLLBACK, add(command)) + DONE)
    assert [event.detail for event in events if isinstance(event, Notice) and event.rule == "FIELD_NOT_SHOWN"] == [
        "the backend does not say which words its citations belong to: rule (1), unknown (1), web page (1)"
    ]


def test_a_second_init_is_ignored() -> None:
    events = decode(init() + init("c2", "r2") + acts(add(output("a"))) + DONE)
    assert (events[0], rules(events)) == (ResponseStart("r1"), ["LATE_INIT"])


def test_an_answer_may_begin_without_an_init() -> None:
    assert join(decode(acts(add(output("a"))) + DONE))[:2] == [ResponseStart(None), TextDelta("a")]
