"""An answer of a backend of the Messages API reaches a client of the same API as the backend wrote it.

The values are those of the published types of Anthropic's SDK. The exceptions are listed in
docs/messages-backends.md, "A client of the same API".
"""

import json
from collections.abc import Iterable
from typing import Any, Final

import pytest

from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from gateway.core.policy import Policy
from gateway.dialect import AnswerHead, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from tests.same_api.test_messages_request import ADAPTER, BODY, PUBLISHED
from tests.same_api.unknown import NEW_FIELDS, with_new_fields

DIALECT: Final = AnthropicMessagesDialect()
HEAD: Final = AnswerHead("1", 0, "m", lambda: 0)
CONTENT: Final[list[dict[str, Any]]] = [*PUBLISHED["content"], {"type": "x_block", "content": [{"type": "x_part"}]}]
KINDS: Final = [block["type"] for block in CONTENT]
# The fields of a block that its deltas fill, and those of a delta that fills them.
GROWN: Final[dict[str, tuple[str, Any, str, str]]] = {
    "text": ("text", "", "text_delta", "text"),
    "thinking": ("thinking", "", "thinking_delta", "thinking"),
    "tool_use": ("input", {}, "input_json_delta", "partial_json"),
    "server_tool_use": ("input", {}, "input_json_delta", "partial_json"),
    "mcp_tool_use": ("input", {}, "input_json_delta", "partial_json"),
}


def answered(body: bytes, *, stream: bool, label: str | None = None) -> bytes:
    """The bytes that the client gets."""
    document = read_document(json.dumps(BODY | {"stream": stream}).encode())
    request = DIALECT.decode(document, RequestHead("/v1/messages"))
    exchange = Exchange(ADAPTER, request.conversation, Policy(), label=label)
    kind = "text/event-stream" if stream else "application/json"
    exchange.on_response_head(200, {"content-type": kind})
    events = [*exchange.feed(body), *exchange.close()]
    events += exchange.estimate()
    if not stream:
        return DIALECT.encode_answer(request, HEAD, events)
    encoder = DIALECT.stream_encoder(request, HEAD)
    return encoder.feed(events) + encoder.close()


def whole(message: dict[str, Any]) -> Any:
    return json.loads(answered(json.dumps(message).encode(), stream=False))


def streamed(events: Iterable[dict[str, Any]]) -> list[Any]:
    written = b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)
    sent = answered(written, stream=True).decode()
    return [json.loads(frame.partition("data: ")[2]) for frame in sent.split("\n\n") if frame]


def message_with(*content: dict[str, Any]) -> dict[str, Any]:
    """A whole answer, with the id and the model that the gateway writes itself."""
    calls = any(block["type"] == "tool_use" for block in content)
    reason = "tool_use" if calls else "end_turn"
    message = PUBLISHED["message"] | {"content": [*content], "stop_reason": reason, "stop_sequence": None}
    return {**with_new_fields(message), "id": "msg_1", "model": "m"}


def stream_of(block: dict[str, Any], *more: dict[str, Any]) -> list[dict[str, Any]]:
    """A stream with one block, and `more` deltas of it."""
    message = message_with(block)
    (block,) = message["content"]
    last = with_new_fields(PUBLISHED["message_delta"])
    last["delta"] |= {"stop_reason": message["stop_reason"], "stop_sequence": None}
    start = {**message, "content": [], "stop_reason": None}
    opened, deltas = opened_block(block)
    return [
        {"type": "message_start", "message": start, **NEW_FIELDS},
        {"type": "content_block_start", "index": 0, "content_block": opened, **NEW_FIELDS},
        *[
            {"type": "content_block_delta", "index": 0, "delta": delta | NEW_FIELDS, **NEW_FIELDS}
            for delta in (*deltas[:-1], *more, *deltas[-1:])
        ],
        {"type": "content_block_stop", "index": 0, **NEW_FIELDS},
        last,
        {"type": "message_stop", **NEW_FIELDS},
    ]


def opened_block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The block as it opens, and the deltas that fill it."""
    if block["type"] == "compaction":
        delta = {"type": "compaction_delta", "content": "a summary", "encrypted_content": "state"}
        return block | {"content": None, "encrypted_content": None}, [delta]
    if block["type"] not in GROWN:
        return block, []
    field, empty, kind, piece = GROWN[block["type"]]
    text = block[field] if isinstance(block[field], str) else json.dumps(block[field])
    deltas = [{"type": kind, piece: text[:1]}, {"type": kind, piece: text[1:]}]
    opened = block | {field: empty}
    if "signature" in block:
        return opened | {"signature": ""}, [*deltas[:1], {"type": "signature_delta", "signature": "state"}]
    return opened, [delta for delta in deltas if delta[piece]]


@pytest.mark.parametrize("block", CONTENT, ids=KINDS)
def test_a_whole_answer_arrives_with_what_is_new_in_it(block: dict[str, Any]) -> None:
    message = message_with(block)
    assert whole(message) == message


@pytest.mark.parametrize("block", CONTENT, ids=KINDS)
def test_every_event_of_a_stream_arrives_with_what_is_new_in_it(block: dict[str, Any]) -> None:
    events = stream_of(block)
    assert streamed(events) == events


@pytest.mark.parametrize("delta", PUBLISHED["deltas"], ids=[delta["type"] for delta in PUBLISHED["deltas"]])
def test_every_delta_of_a_text_that_is_none_of_its_text_arrives(delta: dict[str, Any]) -> None:
    if delta["type"] not in {"citations_delta", "compaction_delta"}:
        delta = {**delta, "type": "x_delta"}
    events = stream_of({"type": "text", "text": "ab", "citations": None}, with_new_fields(delta))
    assert streamed(events) == events


@pytest.mark.parametrize("kind", ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "x_block"])
def test_a_delta_of_a_new_type_arrives(kind: str) -> None:
    block = next(block for block in CONTENT if block["type"] == kind)
    events = stream_of(block, {"type": "x_delta", "piece": [1]})
    assert streamed(events) == events


@pytest.mark.parametrize("block", [{"type": "text", "text": ""}, {"type": "thinking", "thinking": ""}])
def test_a_block_without_text_arrives(block: dict[str, Any]) -> None:
    message = message_with(block, block)
    assert whole(message) == message
    begin, opened, *_, last, stop = stream_of(block)
    events = [begin, opened, {"type": "content_block_stop", "index": 0}, last, stop]
    assert streamed(events) == events


def test_an_event_of_a_new_type_arrives_in_its_place() -> None:
    events = stream_of({"type": "text", "text": "ab"})
    new = {"type": "x_event", **NEW_FIELDS}
    events = [event for one in events for event in (one, new)][:-1]
    assert streamed(events) == events


def test_all_blocks_arrive_in_their_order() -> None:
    blocks = [block for number, block in enumerate(CONTENT) if block["type"] not in KINDS[:number]]
    message = message_with(*blocks)
    assert whole(message) == message
    streams = [stream_of(block) for block in blocks]
    body = [event | {"index": number} for number, one in enumerate(streams) for event in one[1:-2]]
    last = streams[0][-2]
    last["delta"]["stop_reason"] = "tool_use"
    events = [streams[0][0], *body, last, streams[0][-1]]
    assert streamed(events) == events


def test_an_answer_without_content_arrives() -> None:
    message = message_with()
    assert whole(message) == message
    events = stream_of({"type": "text", "text": ""})
    events = [events[0], *events[-2:]]
    assert streamed(events) == events


@pytest.mark.parametrize("reason", ["pause_turn", "refusal", "compaction", "x_reason", "max_tokens"])
def test_every_stop_reason_arrives(reason: str) -> None:
    message = message_with({"type": "text", "text": "a"}) | {"stop_reason": reason}
    assert whole(message) == message
    events = stream_of({"type": "text", "text": "a"})
    events[-2]["delta"]["stop_reason"] = reason
    assert streamed(events) == events


def test_a_message_of_few_fields_gets_no_others() -> None:
    """Servers of other makers leave out what Anthropic writes as null."""
    usage = {"input_tokens": 3, "output_tokens": 4}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    message: dict[str, Any] = {**head, "content": [], "usage": usage, "stop_reason": "end_turn", "stop_sequence": None}
    assert whole(message) == message


def test_the_state_of_a_compaction_gets_the_label_of_its_backend() -> None:
    label = "Dragoman0123456789abcdef"
    events = stream_of(next(block for block in CONTENT if block["type"] == "compaction"))
    written = b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)
    assert b'"encrypted_content":"%bstate"' % label.encode() in answered(written, stream=True, label=label)
