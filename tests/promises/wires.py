"""Defines the wires of the promise tests: the entry of settings.json, and bytes of valid and irregular responses."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.core.conversation import Json
from gateway.testing.faults import ResponseEvents
from tests.adapters.proto.backend.mappings import PARTS
from tests.adapters.proto.backend.services import answer


class Wire(msgspec.Struct, frozen=True):
    """`said` writes raw bytes into a text event, as they are; `unknown` are events from the future; `entry` belongs
    into settings.json. `surrogate`: half a surrogate pair, as the wire could write it."""

    entry: Mapping[str, Json]
    spoken: ResponseEvents
    said: Callable[[bytes], bytes]
    unknown: bytes
    surrogate: bytes = rb"\ud800"


def _sse(document: Json) -> bytes:
    return b"data: %s\n\n" % json.dumps(document).encode()


def _line(document: Json) -> bytes:
    return json.dumps(document).encode() + b"\n"


def _chat(content: str | None = None, finish: str | None = None) -> bytes:
    choice: Json = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return _sse({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})


def _message_event(event: dict[str, Json]) -> bytes:
    """An event of the Messages wire."""
    return b"event: %s\n" % str(event["type"]).encode() + _sse(event)


def _piece(text: str) -> bytes:
    delta: Json = {"type": "text_delta", "text": text}
    return _message_event({"type": "content_block_delta", "index": 0, "delta": delta})


def _message_end(reason: str) -> bytes:
    delta: Json = {"stop_reason": reason, "stop_sequence": None}
    return (
        _message_event({"type": "content_block_stop", "index": 0})
        + _message_event({"type": "message_delta", "delta": delta, "usage": {}})
        + _message_event({"type": "message_stop"})
    )


_MESSAGE: Final[Json] = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": []}
_BLOCK: Final[Json] = {"type": "text", "text": ""}
_MESSAGE_START: Final = _message_event({"type": "message_start", "message": _MESSAGE}) + _message_event(
    {"type": "content_block_start", "index": 0, "content_block": _BLOCK}
)


def _event(kind: str, **fields: Json) -> bytes:
    return _sse({"type": kind, **fields})


def _responses_text(text: str) -> bytes:
    return _event("response.output_text.delta", output_index=0, content_index=0, delta=text)


_RESPONSE: Final[Json] = {"id": "x", "object": "response", "model": "m", "status": "completed", "output": []}
_MESSAGE_ITEM: Final[Json] = {"type": "message", "role": "assistant", "content": []}
_CALL: Final[Json] = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
_MESSAGE_ADDED: Final = _event("response.output_item.added", output_index=0, item=_MESSAGE_ITEM)
_COMPLETED: Final = _event("response.completed", response=_RESPONSE)


def warp_frame(event: ResponseEvent) -> bytes:
    """An event of the protobuf wire."""
    return _frame(event.SerializeToString())


def _frame(event: bytes) -> bytes:
    return b"event:data\ndata:" + base64.urlsafe_b64encode(event) + b"\n\n"


def _chunk(fields: dict[str, Json]) -> bytes:
    """An event of a declared protobuf backend."""
    return _data(answer("parts", fields))


def _data(message: bytes) -> bytes:
    return b"data:" + base64.b64encode(message) + b"\n\n"


def _actions(*actions: object) -> bytes:
    return _frame(ResponseEvent(client_actions={"actions": list(actions)}).SerializeToString())


def _append(text: str) -> ResponseEvent:
    message = {"id": "m1", "task_id": "t1", "agent_output": {"text": text}}
    append = {"task_id": "t1", "mask": {"paths": ["agent_output.text"]}, "message": message}
    return ResponseEvent(client_actions={"actions": [{"append_to_message_content": append}]})


def _calls(call: Json) -> bytes:
    """A message with this call, on the protobuf wire."""
    message = {"id": "m2", "task_id": "t1", "tool_call": call}
    return _actions({"add_messages_to_task": {"task_id": "t1", "messages": [message]}})


def broken_call() -> bytes:
    """A wrapped call without a name, on the protobuf wire."""
    return _calls({"tool_call_id": "c", "call_mcp_tool": {"name": ""}})


def _warp_said(raw: bytes) -> bytes:
    """A string field may hold any bytes on the wire, though no encoder writes them."""
    return _frame(_append("?" * len(raw)).SerializeToString().replace(b"?" * len(raw), raw))


_ADDED: Final = {"task_id": "t1", "messages": [{"id": "m1", "task_id": "t1", "agent_output": {"text": "one"}}]}
_WARP: Final = ResponseEvents(
    "text/event-stream",
    begin=_frame(ResponseEvent(init={"conversation_id": "c1", "request_id": "r1"}).SerializeToString())
    + _actions({"create_task": {"task": {"id": "t1"}}}, {"add_messages_to_task": _ADDED}),
    text=_frame(_append(" two").SerializeToString()),
    end=_frame(ResponseEvent(finished={"done": {}}).SerializeToString()),
    failure=_frame(ResponseEvent(finished={"internal_error": {"message": "said in the answer"}}).SerializeToString()),
    lost_call=_calls({"tool_call_id": "c"}) + _frame(ResponseEvent(finished={"done": {}}).SerializeToString()),
)
_FAILURE: Final[dict[str, Json]] = {"error": {"message": "said in the answer"}}


def _generated(*parts: Json, finish: str | None = None) -> bytes:
    candidate: dict[str, Json] = {"content": {"parts": [*parts], "role": "model"}, "index": 0}
    return _sse({"candidates": [candidate if finish is None else {**candidate, "finishReason": finish}]})


WIRES: Final[Mapping[str, Wire]] = {
    "native": Wire(
        {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter"},
        ResponseEvents(
            "text/event-stream",
            begin=_chat("one"),
            text=_chat(" two"),
            end=_chat(finish="stop") + b"data: [DONE]\n\n",
            failure=_sse(_FAILURE),
            lost_call=_chat(finish="tool_calls") + b"data: [DONE]\n\n",
        ),
        lambda raw: _chat("???").replace(b"???", raw),
        _sse({"object": "telemetry", "id": "x", "choices": [], "news": {"of": ["tomorrow"]}})
        + _sse({"object": "telemetry", "news": {"of": ["tomorrow"]}}),
    ),
    "messages": Wire(
        {"adapter": "adapters.anthropic_messages.backend:AnthropicMessagesAdapter"},
        ResponseEvents(
            "text/event-stream",
            begin=_MESSAGE_START + _piece("one"),
            text=_piece(" two"),
            end=_message_end("end_turn"),
            failure=_message_event({"type": "error", **_FAILURE}),
            lost_call=_message_end("tool_use"),
            start=_MESSAGE_START,
        ),
        lambda raw: _piece("???").replace(b"???", raw),
        _message_event({"type": "telemetry", "news": {"of": ["tomorrow"]}}) + _sse({"news": {"of": ["tomorrow"]}}),
    ),
    "responses": Wire(
        {"adapter": "adapters.openai_responses.backend:OpenAIResponsesAdapter"},
        ResponseEvents(
            "text/event-stream",
            begin=_event("response.created", response=_RESPONSE) + _MESSAGE_ADDED + _responses_text("one"),
            text=_responses_text(" two"),
            end=_event("response.output_item.done", output_index=0, item=_MESSAGE_ITEM) + _COMPLETED,
            failure=_event("error", code="server_error", message="said in the answer"),
            lost_call=_event("response.output_item.added", output_index=1, item=_CALL) + _COMPLETED,
            start=_event("response.created", response=_RESPONSE) + _MESSAGE_ADDED,
        ),
        lambda raw: _responses_text("???").replace(b"???", raw),
        _event("response.news", news={"of": ["tomorrow"]}),
    ),
    "generate_content": Wire(
        {"adapter": "adapters.gemini.backend:GeminiAdapter"},
        ResponseEvents(
            "text/event-stream",
            begin=_generated({"text": "one"}),
            text=_generated({"text": " two"}),
            end=_generated({"text": ""}, finish="STOP"),
            failure=_sse(_FAILURE),
            lost_call=_generated({"text": ""}, finish="MALFORMED_FUNCTION_CALL"),
        ),
        lambda raw: _generated({"text": "???"}).replace(b"???", raw),
        _sse({"news": {"of": ["tomorrow"]}, "candidates": []}) + _sse({"news": {"of": ["tomorrow"]}}),
    ),
    "text": Wire(
        {"adapter": "adapters.text.backend:TextAdapter", "wire": "llama_cpp"},
        ResponseEvents(
            "text/event-stream",
            begin=_sse({"content": "one", "stop": False}),
            text=_sse({"content": " two", "stop": False}),
            end=_sse({"content": "", "stop": True, "stop_type": "eos"}),
            failure=_sse(_FAILURE),
            lost_call=_sse({"content": "", "stop": True, "stop_type": "tool_calls"}),
        ),
        lambda raw: _sse({"content": "???", "stop": False}).replace(b"???", raw),
        _sse({"news": {"of": ["tomorrow"]}, "stop": False}) + _sse({"news": {"of": ["tomorrow"]}}),
    ),
    "text_lines": Wire(
        {"adapter": "adapters.text.backend:TextAdapter", "wire": "ollama"},
        ResponseEvents(
            "application/x-ndjson",
            begin=_line({"response": "one", "done": False}),
            text=_line({"response": " two", "done": False}),
            end=_line({"response": "", "done": True, "done_reason": "stop"}),
            failure=_line(_FAILURE),
            lines=True,
            lost_call=_line({"response": "", "done": True, "done_reason": "tool_calls"}),
        ),
        lambda raw: _line({"response": "???", "done": False}).replace(b"???", raw),
        _line({"news": {"of": ["tomorrow"]}, "done": False}) + _line({"news": {"of": ["tomorrow"]}}),
    ),
    "proto": Wire(
        {**PARTS, "adapter": "adapters.proto.backend:ProtoAdapter", "carrier": "sse_base64"},
        ResponseEvents(
            "text/event-stream",
            begin=_chunk({"parts": [{"text": "one"}]}),
            text=_chunk({"parts": [{"text": " two"}]}),
            end=_chunk({"ended": {"fully": {}}}),
            failure=_chunk({"ended": {"crash": {"reason": "said in the answer"}}}),
            lost_call=_chunk({"parts": [{"call": {"id": "c"}}], "ended": {"fully": {}}}),
        ),
        lambda raw: _data(answer("parts", {"parts": [{"text": "?" * len(raw)}]}).replace(b"?" * len(raw), raw)),
        # Field 1999 of the message, and an unknown kind of part: length-delimited, empty.
        _data(b"\xfa\x7c\x00") + _data(b"\x1a\x03\xfa\x7c\x00"),
        surrogate=b"\xed\xa0\x80",
    ),
    "protobuf": Wire(
        {"adapter": "adapters.warp.backend:WarpAdapter"},
        _WARP,
        _warp_said,
        # Field 1999 of the event, and an action that nobody knows: length-delimited, empty.
        _frame(b"\xfa\x7c\x00") + _frame(b"\x12\x05\x0a\x03\xfa\x7c\x00"),
        surrogate=b"\xed\xa0\x80",
    ),
}
