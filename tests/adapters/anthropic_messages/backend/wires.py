"""Recorded shapes of responses, as bytes."""

import json
from typing import Final

from gateway.core.conversation import Json

Event = dict[str, Json]

USAGE: Final[Json] = {"input_tokens": 3, "output_tokens": 1}
TEXT: Final[Event] = {"type": "text", "text": ""}
THINKING: Final[Event] = {"type": "thinking", "thinking": "", "signature": ""}


def sse(*events: Event) -> bytes:
    """Events with the names of their types."""
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json.dumps(event).encode()) for event in events
    )


def start(usage: Json = USAGE, **fields: Json) -> Event:
    """The start of a message without content."""
    message: Event = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": []}
    return {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage, **fields}}


def block(index: int, opened: Event, *deltas: Event) -> list[Event]:
    """All events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": opened},
        *(grown(index, delta) for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def grown(index: int, delta: Event) -> Event:
    """One delta of a block."""
    return {"type": "content_block_delta", "index": index, "delta": delta}


def text(*pieces: str) -> list[Event]:
    """The deltas of a block of text."""
    return [{"type": "text_delta", "text": piece} for piece in pieces]


def thinking(*pieces: str, signature: str = "") -> list[Event]:
    """The deltas of a block of thinking."""
    deltas: list[Event] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    if signature:
        deltas.append({"type": "signature_delta", "signature": signature})
    return deltas


def call(identity: str, name: str) -> Event:
    """A call as it opens."""
    return {"type": "tool_use", "id": identity, "name": name, "input": {}}


def arguments(*pieces: str) -> list[Event]:
    """The deltas of a call."""
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def end(
    reason: str | None = "end_turn", sequence: str | None = None, usage: Json = None, **fields: Json
) -> list[Event]:
    """The end of a message."""
    counted: Json = {"output_tokens": 4} if usage is None else usage
    delta: Json = {"stop_reason": reason, "stop_sequence": sequence, **fields}
    return [{"type": "message_delta", "delta": delta, "usage": counted}, {"type": "message_stop"}]


def message(*content: Json, reason: str | None = "end_turn", **fields: Json) -> bytes:
    """A whole response."""
    whole: Event = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [*content]}
    usage: Json = {"input_tokens": 3, "output_tokens": 4}
    return json.dumps({**whole, "stop_reason": reason, "stop_sequence": None, "usage": usage, **fields}).encode()
