"""Reads the events of a client's WebSocket, and writes those of the server as texts.

Sources: OpenAI's published types `ResponsesClientEvent` and `ResponsesServerEvent`, and its guide to the WebSocket
mode. `response.processed` is an event of Codex, which only tells.
"""

import json
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.dialect import ErrorAnswer
from gateway.dialects.websocket import ClientEvent, CreateEvent, IgnoredEvent, RefusedEvent

CREATE: Final = "response.create"
PROCESSED: Final = "response.processed"
LANE: Final = "stream_id"
HEADERS: Final = "headers"
_LONGEST_LANE: Final = 256
# Behind the line with the type of an event stands its JSON, in one line.
_DATA: Final = b"\ndata: "

_read = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_ON: Final = msgspec.Raw(b"true")


def read_event(text: str) -> ClientEvent:
    """Returns what an event asks for. The fields of a `response.create` are not read further: they are those of the
    request."""
    fields = _fields(text)
    if fields is None:
        return RefusedEvent(InvalidRequest("The event must be a JSON object.", code="invalid_json"))
    kind, lane = _text(fields.pop("type", None)), _text(fields.get(LANE))
    if kind == PROCESSED:
        return IgnoredEvent()
    if kind != CREATE:
        named = "no type" if kind is None else f"the type {kind[:80]!r}"
        message = f"The event has {named}. The gateway knows {CREATE} and {PROCESSED}."
        return RefusedEvent(InvalidRequest(message, param="type"), lane)
    if LANE in fields:
        if not lane or len(lane) > _LONGEST_LANE:
            message = f"{LANE} must be a text of 1 to {_LONGEST_LANE} characters."
            return RefusedEvent(InvalidRequest(message, param=LANE))
        del fields[LANE]
    # Over a WebSocket every answer is streamed.
    fields["stream"] = _ON
    return CreateEvent(_encode(fields), lane)


def event_texts(stream: bytes, lane: str | None, headers: Mapping[str, str]) -> list[bytes]:
    """Returns the JSON of each event among the bytes of an answer. Codex reads `headers` in any event."""
    events = stream.split(b"\n\n")
    texts = [event[at + len(_DATA) :] for event in events if (at := event.find(_DATA)) >= 0]
    if headers and texts:
        texts[0] = _with(texts[0], HEADERS, headers)
    return texts if lane is None else [_with(text, LANE, lane) for text in texts]


def error_text(answer: ErrorAnswer, lane: str | None) -> bytes:
    """Returns the event of an error: with its status, by which Codex knows what it would do over HTTP. Codex reads the
    headers beside the error, and OpenAI's SDKs read them in it."""
    headers = dict(answer.headers)
    error = msgspec.json.decode(answer.body)["error"]
    event = {"type": "error", "status": answer.status, "error": {**error, HEADERS: headers}, HEADERS: headers}
    return _encode(event if lane is None else {**event, LANE: lane})


def _with(event: bytes, name: str, value: str | Mapping[str, str]) -> bytes:
    """Returns the JSON of an event with one field more, behind its own."""
    return b'%b,"%b":%b}' % (event[:-1], name.encode(), _encode(value))


def _fields(text: str) -> dict[str, msgspec.Raw] | None:
    """Returns the fields of an event; None: it is no object."""
    try:
        return _read(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        # Half a character is kept: who reads the request repairs it, and says so.
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    return {name: msgspec.Raw(json.dumps(value).encode()) for name, value in fields.items()}


def _text(value: msgspec.Raw | None) -> str | None:
    """Returns the text of a value that is one."""
    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=str)
    except msgspec.DecodeError:
        return None
