"""Encodes a response as the Messages wire: the events of a stream, or one object."""

from collections.abc import Iterator

import msgspec

from adapters.anthropic_messages.demo.answer import Answer, arguments_of
from adapters.anthropic_messages.demo.thinking import sign
from gateway.core.conversation import Json
from gateway.demo.scripted_model.words import pieces

Event = dict[str, Json]


def frame(event: Event) -> bytes:
    """Encodes one server-sent event, which has the name of its type."""
    return b"event: " + str(event["type"]).encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"


def stream(answer: Answer) -> Iterator[Event]:
    """Yields all events of the response, with a ping in the first block."""
    blocks = enumerate(_blocks(answer))
    events = [event for index, (block, deltas) in blocks for event in block_events(index, block, deltas)]
    ping: Event = {"type": "ping"}
    yield from [message_start(answer), *events[:1], ping, *events[1:]]
    yield message_delta(answer)
    yield {"type": "message_stop"}


def frames(answer: Answer) -> list[bytes]:
    """Encodes all events of the response."""
    return [frame(event) for event in stream(answer)]


def block_events(index: int, block: Event, deltas: list[Event]) -> Iterator[Event]:
    """Yields the events of one block: its start without content, its deltas, its end."""
    yield {"type": "content_block_start", "index": index, "content_block": block}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def message_start(answer: Answer) -> Event:
    return {"type": "message_start", "message": {**_message(answer, [], None, None), "usage": _usage(answer, 1)}}


def message_delta(answer: Answer) -> Event:
    delta: Json = {"stop_reason": answer.stop_reason, "stop_sequence": answer.stop_sequence}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer.output_tokens}}


def message(answer: Answer) -> Event:
    """Builds the same response as one object."""
    content: list[Json] = []
    if answer.thinking:
        thinking = "".join(answer.thinking)
        content.append({"type": "thinking", "thinking": thinking, "signature": sign(thinking)})
    if answer.text:
        content.append({"type": "text", "text": "".join(answer.text)})
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)} for call in answer.calls
    ]
    whole = _message(answer, content, answer.stop_reason, answer.stop_sequence)
    return {**whole, "usage": _usage(answer, answer.output_tokens)}


def error_body(message: str, kind: str) -> Event:
    """Builds the error object of the wire, which is also the error event of a stream."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_demo"}


def _blocks(answer: Answer) -> Iterator[tuple[Event, list[Event]]]:
    """Yields each block as it begins, with its deltas."""
    if answer.thinking:
        signature: Event = {"type": "signature_delta", "signature": sign("".join(answer.thinking))}
        thinking: list[Event] = [{"type": "thinking_delta", "thinking": piece} for piece in answer.thinking]
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thinking, signature]
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.text]
    for call in answer.calls:
        written = ["", *pieces(arguments_of(call))]
        deltas: list[Event] = [{"type": "input_json_delta", "partial_json": piece} for piece in written]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, deltas


def _message(answer: Answer, content: list[Json], reason: str | None, stop: str | None) -> Event:
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": stop,
    }


def _usage(answer: Answer, output_tokens: int) -> Event:
    return {
        "input_tokens": answer.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    }
