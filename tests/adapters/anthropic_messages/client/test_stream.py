"""What a client of the Messages API receives, streamed and whole: blocks, reasons, counts and errors."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest

from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from adapters.anthropic_messages.client.stream import PING
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import (
    BackendTimeout,
    BackendTruncated,
    GatewayError,
    InvalidRequest,
    ServerShutdown,
)
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    Reason,
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
from gateway.dialect import AnswerHead
from gateway.dialects.stream_state import STREAM_TRANSITIONS, StreamInput, StreamState
from tests.adapters.anthropic_messages.client.client import StreamReader, frames
from tests.adapters.anthropic_messages.client.requests import request

HEAD: Final = AnswerHead("0123456789abcdef01234567", 1_700_000_000, "m", lambda: 1_700_000_000, request_id="req_1")
SIGNED: Final = ReasoningEnd(with_provider_state("anthropic", {"signature": "s"}))
CALL: Final[tuple[Event, ...]] = (ToolCallStart(0, "toolu_1", "f"), ToolCallDelta(0, "{}"), ToolCallEnd(0))
TEXT: Final = {"type": "text", "text": "a"}


def streamed(*events: Event, **fields: object) -> StreamReader:
    """What a strict client reads of the stream; every event is fed alone."""
    encoder = AnthropicMessagesDialect().stream_encoder(request(**fields), HEAD)
    data = b"".join(encoder.feed([event]) for event in (ResponseStart(), *events)) + encoder.close()
    reader = StreamReader().read(data)
    assert reader.stopped
    return reader


def whole(*events: Event, **fields: object) -> dict[str, Any]:
    body = AnthropicMessagesDialect().encode_answer(request(**fields), HEAD, (ResponseStart(), *events))
    message: dict[str, Any] = json.loads(body)
    return message


def called(arguments: Sequence[str], call_id: str = "toolu_1", extra: JsonObject | None = None) -> tuple[Event, ...]:
    start = ToolCallStart(0, call_id, "f", extra=extra or {})
    return (start, *[ToolCallDelta(0, piece) for piece in arguments], ToolCallEnd(0))


def use(given: object, call_id: str = "toolu_1", **fields: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": given, **fields}


def thinking(text: str, signature: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def own(kind: str, **fields: Json) -> PassthroughFields:
    """An event as a backend of the same API writes it."""
    return PassthroughFields("event", {"type": kind, "index": 5, **fields})


def own_text(**fields: Json) -> PassthroughFields:
    return own("content_block_start", content_block={"type": "text", "text": "", **fields})


def citation(text: str) -> PassthroughFields:
    return own("content_block_delta", delta={"type": "citations_delta", "citation": {"cited_text": text}})


END: Final = own("content_block_stop")
CALLER: Final[Json] = {"content_block": {"caller": {"type": "direct"}}}
SERVER_CALL: Final[dict[str, Json]] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}
SERVER_RESULT: Final[dict[str, Json]] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


@pytest.mark.parametrize(
    ("events", "content"),
    [
        ([], []),
        ([TextDelta("a"), TextDelta("b")], [{"type": "text", "text": "ab"}]),
        ([ReasoningDelta("t"), TextDelta("a")], [thinking("t"), TEXT]),
        ([ReasoningDelta("t"), SIGNED, TextDelta("a")], [thinking("t", "s"), TEXT]),
        ([SIGNED, TextDelta("a")], [thinking("", "s"), TEXT]),
        ([ReasoningEnd(with_provider_state("openai", {"id": "rs_1"})), TextDelta("a")], [TEXT]),
        (
            [ReasoningDelta("t"), ReasoningEnd(with_provider_state("openai", {"id": "rs_1"})), ReasoningDelta("u")],
            [thinking("t"), thinking("u")],
        ),
        (
            [ReasoningEnd(with_provider_state("anthropic", {"data": "d"})), TextDelta("a")],
            [{"type": "redacted_thinking", "data": "d"}, TEXT],
        ),
        (called(['{"a"', ": 1}"]), [use({"a": 1})]),
        (called([]), [use({})]),
        (called([" ", "\n"]), [use({})]),
        (called([" ", '{"a":', " 1}"]), [use({"a": 1})]),
        (called(["[1", "]"]), [use({"arguments": "[1]"})]),
        (called(["tru", "e {"]), [use({"arguments": "true {"})]),
        (called(["{}"], "call:1"), [use({}, "toolu_0af6315558b41599b4a0fbfa")]),
        (called(["{}"], extra={"anthropic_messages": CALLER}), [use({}, caller={"type": "direct"})]),
        (called(["{}"], extra={"caller": "of another API"}), [use({})]),
        (called(["{}"], extra={"extra_content": {"google": {"thought_signature": "g"}}}), [use({})]),
        (
            [
                TextDelta("a"),
                ToolCallStart(4, "x", "f"),
                ToolCallStart(2, "y", "f"),
                ToolCallDelta(2, '{"n"'),
                ToolCallDelta(4, '{"n":1}'),
                ToolCallDelta(2, ":2}"),
                ToolCallEnd(2),
                ToolCallEnd(4),
            ],
            [TEXT, use({"n": 1}, "x"), use({"n": 2}, "y")],
        ),
        (
            [
                own("content_block_start", content_block={**SERVER_CALL, "input": {}}),
                own("content_block_delta", delta={"type": "input_json_delta", "partial_json": '{"query":'}),
                own("content_block_delta", delta={"type": "input_json_delta", "partial_json": '"x"}'}),
                END,
                own("content_block_start", content_block=SERVER_RESULT),
                END,
                TextDelta("a"),
            ],
            [SERVER_CALL, SERVER_RESULT, TEXT],
        ),
        (
            [
                TextDelta("a"),
                own_text(citations=[]),
                TextDelta("b"),
                citation("x"),
                citation("y"),
                END,
                own_text(),
                TextDelta("c"),
            ],
            [
                TEXT,
                {"type": "text", "text": "b", "citations": [{"cited_text": "x"}, {"cited_text": "y"}]},
                {"type": "text", "text": "c"},
            ],
        ),
    ],
)
def test_the_blocks_of_stream_and_whole_answer(events: Sequence[Event], content: list[dict[str, Any]]) -> None:
    finish = Finish("stop")
    message = whole(*events, finish)
    assert streamed(*events, finish).content == content == message["content"]


def test_the_id_of_a_call_is_the_same_every_time() -> None:
    ids = {whole(*called(["{}"], "a b/ä"), Finish("stop"))["content"][0]["id"] for _ in range(2)}
    assert len(ids) == 1 and ids != {whole(*called(["{}"], "a b/o"), Finish("stop"))["content"][0]["id"]}


@pytest.mark.parametrize(
    ("finish", "reason", "sequence"),
    [
        (Finish("stop"), "end_turn", None),
        (Finish("stop", "stop"), "end_turn", None),
        (Finish("stop", "stop_sequence:END", "END"), "stop_sequence", "END"),
        (Finish("length"), "max_tokens", None),
        (Finish("tool_calls"), "tool_use", None),
        (Finish("content_filter"), "refusal", None),
    ],
)
def test_the_reason_why_an_answer_ended(finish: Finish, reason: str, sequence: str | None) -> None:
    last, message = streamed(*CALL, finish).last, whole(*CALL, finish)
    assert last is not None
    assert (last["stop_reason"], last["stop_sequence"]) == (reason, sequence)
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, sequence)


@pytest.mark.parametrize(
    ("finish", "own_word", "reason"),
    [
        (Finish("stop"), "pause_turn", "pause_turn"),
        (Finish("length"), "pause_turn", "max_tokens"),
        (Finish("tool_calls"), "pause_turn", "tool_use"),
        (Finish("length"), "model_context_window_exceeded", "model_context_window_exceeded"),
        (Finish("stop"), "unheard_of", "unheard_of"),
    ],
)
def test_the_word_of_a_backend_of_the_same_api_stays_if_it_is_true(finish: Finish, own_word: str, reason: str) -> None:
    delta: Json = {"stop_reason": own_word, "stop_sequence": None}
    ended = PassthroughFields("event", {"type": "message_delta", "delta": delta})
    last, message = streamed(*CALL, ended, finish).last, whole(*CALL, ended, finish)
    assert last is not None
    assert last["stop_reason"] == message["stop_reason"] == reason


@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "content_filter"])
def test_every_reason_has_a_word(reason: Reason) -> None:
    assert whole(Finish(reason))["stop_reason"]


DETAILS: Final[JsonObject] = {
    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


def counts(asked: int, answered: int, *, read: int = 0, written: int = 0, thought: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {
        "input_tokens": asked,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": answered,
    }
    return {**found, "output_tokens_details": {"thinking_tokens": thought}} if thought else found


@pytest.mark.parametrize(
    ("reports", "expected", "said"),
    [
        ([UsageReport(100, 7)], counts(100, 7), None),
        ([UsageReport(100, 7, extra=DETAILS)], counts(10, 7, read=60, written=30, thought=4), None),
        ([UsageReport(100), UsageReport(None, 7)], counts(100, 7), None),
        ([UsageReport(100, 7, estimated=True)], counts(100, 7), "estimated"),
        ([UsageReport(None, 7)], counts(0, 7), "partial"),
        ([UsageReport(None, None, 9)], counts(0, 0), "total_only"),
        ([UsageReport(5, 1, extra=DETAILS)], counts(0, 1, read=60, written=30, thought=4), None),
        ([UsageReport(5, 1, extra={"prompt_tokens_details": None})], counts(5, 1), None),
        ([], counts(0, 0), "partial"),
    ],
)
def test_the_counts_are_numbers_always(reports: list[Event], expected: dict[str, Any], said: str | None) -> None:
    last, message = streamed(TextDelta("a"), Finish("stop"), *reports).last, whole(TextDelta("a"), *reports)
    assert last is not None
    assert last["usage"] == message["usage"] == expected
    assert last["dragoman"].get("usage") == message.get("dragoman", {}).get("usage") == said


@pytest.mark.parametrize(
    ("reports", "tokens"),
    [
        ([UsageReport(100)], 100),
        ([UsageReport(100, extra=DETAILS)], 10),
        ([UsageReport(None, 3)], 5),
        ([UsageReport(0)], 5),
        ([], 5),
    ],
)
def test_a_message_starts_with_the_tokens_of_its_prompt(reports: list[Event], tokens: int) -> None:
    message = streamed(*reports, TextDelta("a"), Finish("stop")).message
    assert message is not None and message["usage"]["input_tokens"] == tokens


def test_thinking_may_be_shown_without_its_text() -> None:
    events = (ReasoningDelta("secret"), SIGNED, TextDelta("a"), Finish("stop"))
    thought = {"type": "adaptive", "display": "omitted"}
    expected = [thinking("", "s"), TEXT]
    assert streamed(*events, thinking=thought).content == expected == whole(*events, thinking=thought)["content"]


def test_a_stream_begins_with_its_first_content() -> None:
    encoder = AnthropicMessagesDialect().stream_encoder(request(), HEAD)
    assert encoder.feed([ResponseStart(), UsageReport(5)]) == b""
    assert encoder.quiet() == PING
    names = [frame["type"] for frame in frames(encoder.feed([TextDelta("a")]))]
    assert names == ["message_start", "content_block_start", "content_block_delta"]


def test_an_empty_answer_is_a_whole_message() -> None:
    encoder = AnthropicMessagesDialect().stream_encoder(request(), HEAD)
    data = encoder.feed([ResponseStart(), Finish("stop")]) + encoder.close()
    assert [frame["type"] for frame in frames(data)] == ["message_start", "message_delta", "message_stop"]


def test_a_line_is_one_line_to_every_client() -> None:
    text = "a\u2028b\u2029c\x85d\U0001f600"
    encoder = AnthropicMessagesDialect().stream_encoder(request(), HEAD)
    data = encoder.feed([TextDelta(text), *called([f'{{"{text}": 1}}']), Finish("stop")]) + encoder.close()
    assert len(data.decode().splitlines()) == data.count(b"\n")
    content = StreamReader().read(data).content
    assert (content[0]["text"], content[1]["input"]) == (text, {text: 1})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest("no", param="messages[0].content"), "invalid_request_error"),
        (InvalidRequest("no", status=401), "authentication_error"),
        (InvalidRequest("no", status=402), "billing_error"),
        (InvalidRequest("no", status=403), "permission_error"),
        (InvalidRequest("no", status=404), "not_found_error"),
        (InvalidRequest("no", status=405), "invalid_request_error"),
        (InvalidRequest("no", status=408), "invalid_request_error"),
        (InvalidRequest("no", status=413), "request_too_large"),
        (InvalidRequest("no", status=415), "invalid_request_error"),
        (GatewayError("no", status=429, kind="rate_limit"), "rate_limit_error"),
        (GatewayError("no"), "api_error"),
        (BackendTruncated("no"), "api_error"),
        (ServerShutdown("no"), "overloaded_error"),
        (BackendTimeout("no"), "timeout_error"),
        (GatewayError("no", status=529), "overloaded_error"),
    ],
)
def test_the_type_of_an_error_follows_from_its_status(error: GatewayError, kind: str) -> None:
    answer = AnthropicMessagesDialect().encode_error(error, "req_1")
    encoder = AnthropicMessagesDialect().stream_encoder(request(), HEAD)
    data = encoder.feed([TextDelta("a")]) + encoder.fail(error)
    *_, late = frames(data)
    early = json.loads(answer.body)
    assert answer.status == error.status
    assert (
        early
        == late
        == {
            "type": "error",
            "error": {"type": kind, "message": "no", "param": error.param, "code": error.code},
            "request_id": "req_1",
        }
    )
    assert encoder.close() == b"", "a failed answer must not end like a complete one"


def test_the_states_of_a_stream() -> None:
    """Every input is possible somewhere, and every state but the last one leads on."""
    inputs: set[StreamInput] = {name for row in STREAM_TRANSITIONS.values() for name in row}
    assert inputs == {"write", "finish", "end"}
    assert STREAM_TRANSITIONS.keys() == set(StreamState)
    assert [state for state, row in STREAM_TRANSITIONS.items() if not row] == [StreamState.ENDED]


def test_the_answer_has_the_fields_of_the_document() -> None:
    message = whole(TextDelta("a"), Finish("stop"), UsageReport(1, 1))
    assert message == {
        "id": f"msg_{HEAD.unique}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [TEXT],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": counts(1, 1),
    }
    assert msgspec.json.decode(AnthropicMessagesDialect().encode_count(7)) == {"input_tokens": 7}


def test_an_object_that_is_no_complete_json_stays_as_the_model_wrote_it() -> None:
    encoder = AnthropicMessagesDialect().stream_encoder(request(), HEAD)
    data = encoder.feed(called(['{"a', '": '])) + encoder.feed([Finish("length")]) + encoder.close()
    deltas = [frame["delta"] for frame in frames(data) if frame["type"] == "content_block_delta"]
    assert "".join(delta["partial_json"] for delta in deltas) == '{"a": '
    assert whole(*called(['{"a', '": ']), Finish("length"))["content"] == [use({"arguments": '{"a": '})]
