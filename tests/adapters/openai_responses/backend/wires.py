"""Recorded shapes of answers, as bytes."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.core.conversation import Json, JsonObject

WireEvent = dict[str, Json]
# A call of a tool whose input is a text, as it begins.
CUSTOM: Final[WireEvent] = {"type": "custom_tool_call", "name": "run", "call_id": "a", "input": ""}


def sse(*events: JsonObject) -> bytes:
    """Events as server-sent events, numbered."""
    return b"".join(_event({**event, "sequence_number": number}) for number, event in enumerate(events))


def _event(event: JsonObject) -> bytes:
    name = b"event: %s\n" % str(event["type"]).encode() if "type" in event else b""
    return name + b"data: " + json.dumps(event).encode() + b"\n\n"


def response(status: str = "completed", output: Sequence[Json] = (), **fields: Json) -> WireEvent:
    """A response object."""
    return {"id": "r1", "object": "response", "created_at": 7, "model": "m", "status": status, **fields} | {
        "output": list(output)
    }


def created() -> WireEvent:
    """The first event."""
    return {"type": "response.created", "response": response("in_progress")}


def ended(status: str = "completed", output: Sequence[Json] = (), **fields: Json) -> WireEvent:
    """The last event."""
    return {"type": f"response.{status}", "response": response(status, output, **fields)}


def added(index: int, item: JsonObject) -> WireEvent:
    return {"type": "response.output_item.added", "output_index": index, "item": dict(item)}


def done(index: int, item: JsonObject) -> WireEvent:
    return {"type": "response.output_item.done", "output_index": index, "item": dict(item)}


def delta(kind: str, index: int, text: str, **place: Json) -> WireEvent:
    """A further piece of a part."""
    return {"type": f"response.{kind}.delta", "item_id": f"i{index}", "output_index": index, "delta": text, **place}


def message(text: str | None = None) -> WireEvent:
    """A message as it begins, or with its text."""
    part: Json = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [] if text is None else [part]}


def reasoning(summary: Iterable[str] = (), content: Iterable[str] = (), **fields: Json) -> WireEvent:
    """An item of reasoning."""
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "content": [{"type": "reasoning_text", "text": text} for text in content],
        **fields,
    }


def call(arguments: str = "", name: str | None = "f", call_id: str | None = "a", **fields: Json) -> WireEvent:
    """A call of a function as it begins, or with its arguments."""
    named = {key: value for key, value in (("name", name), ("call_id", call_id)) if value is not None}
    return {"type": "function_call", "id": "fc_1", "arguments": arguments, **named, **fields}


def text_events(index: int, *pieces: str) -> list[WireEvent]:
    """All events of a message."""
    text = "".join(pieces)
    place: WireEvent = {"item_id": "msg_1", "output_index": index, "content_index": 0}
    part: WireEvent = {"type": "output_text", "text": "", "annotations": []}
    return [
        added(index, message()),
        {"type": "response.content_part.added", **place, "part": part},
        *(delta("output_text", index, piece, content_index=0, logprobs=[]) for piece in pieces),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": {**part, "text": text}},
        done(index, message(text)),
    ]


def call_events(index: int, *pieces: str, name: str = "f", call_id: str = "a") -> list[WireEvent]:
    """All events of a call."""
    whole = "".join(pieces)
    place: WireEvent = {"item_id": "fc_1", "output_index": index}
    return [
        added(index, call("", name, call_id)),
        *(delta("function_call_arguments", index, piece) for piece in pieces),
        {"type": "response.function_call_arguments.done", **place, "arguments": whole},
        done(index, call(whole, name, call_id)),
    ]


def usage(prompt: int = 3, completion: int = 4) -> WireEvent:
    """Token counts as the wire writes them."""
    details: WireEvent = {
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    return {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion, **details}


def whole(*items: Json, status: str = "completed", **fields: Json) -> bytes:
    """A whole answer."""
    return json.dumps(response(status, items, **fields)).encode()


def streamed(*events: WireEvent, last: WireEvent | None = None) -> bytes:
    """An answer in a stream: its first event, these, and its last one."""
    return sse(created(), *events, ended() if last is None else last)
