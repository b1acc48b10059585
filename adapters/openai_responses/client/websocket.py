"""Reads the events of a client's WebSocket, and writes those of the server as texts.

Sources: OpenAI's published types `ResponsesClientEvent` and `ResponsesServerEvent`, and its guide to the WebSocket
mode. `response.processed` is an event of Codex, which only tells.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from adapters.openai_responses.client.steering import LANE, STEER, event_fields, read_steer
from adapters.openai_responses.client.stored_answer import CHAIN
from adapters.openai_responses.turn_items import PREVIOUS
from gateway.core.errors import InvalidRequest
from gateway.dialect import ErrorAnswer
from gateway.dialects.websocket import ClientEvent, CreateEvent, IgnoredEvent, RefusedEvent

CREATE: Final = "response.create"
PROCESSED: Final = "response.processed"
HEADERS: Final = "headers"
_LONGEST_LANE: Final = 256
# Behind the line with the type of an event stands its JSON, in one line.
_DATA: Final = b"\ndata: "
_LINE_END: Final = b"\n"
_BLANK: Final = b"\n\n"
# In so many bytes of a stream the events are found one by one.
_FEW: Final = 1024
_events: Final[Callable[[bytes], list[bytes]]] = re.compile(rb"\ndata: (.+)").findall

_encode = msgspec.json.Encoder().encode
_ON: Final = msgspec.Raw(b"true")
_NULL: Final = b"null"


def read_event(text: str) -> ClientEvent:
    """Returns what an event asks for. The fields of a `response.create` are not read further: they are those of the
    request."""
    fields = event_fields(text)
    if fields is None:
        return RefusedEvent(InvalidRequest("The event must be a JSON object.", code="invalid_json"))
    kind = _text(fields.pop("type", None))
    if kind == PROCESSED:
        return IgnoredEvent()
    if kind == STEER:
        return read_steer(fields)
    named_lane = fields.pop(LANE, None)
    lane = _text(named_lane)
    if kind != CREATE:
        named = "no type" if kind is None else f"the type {kind[:80]!r}"
        message = f"The event has {named}. The gateway knows {CREATE}, {PROCESSED} and {STEER}."
        return RefusedEvent(InvalidRequest(message, param="type"), lane)
    # The published type allows null.
    if named_lane is not None and bytes(named_lane) != _NULL and (not lane or len(lane) > _LONGEST_LANE):
        message = f"{LANE} must be a text of 1 to {_LONGEST_LANE} characters."
        return RefusedEvent(InvalidRequest(message, param=LANE))
    # Over a WebSocket every answer is streamed.
    fields["stream"] = _ON
    previous = _text(fields.get(PREVIOUS))
    return CreateEvent(_encode(fields), lane, None if previous is None else CHAIN.answer_entry(previous))


def event_texts(lane: str | None) -> Callable[[bytes], list[bytes]]:
    """Returns what finds the JSON of each event among the bytes of an answer."""
    if lane is None:
        return _texts
    end = b',"%b":%b}' % (LANE.encode(), _encode(lane))
    return lambda stream: [text[:-1] + end for text in _texts(stream)]


def _texts(stream: bytes) -> list[bytes]:
    """Returns the JSON of each event. Of many bytes, the events that begin like the first one, as the deltas of a text
    do, are found by their beginning: the pattern looks at each byte of them."""
    if len(stream) < _FEW:
        return _events(stream)
    at = stream.find(_DATA)
    lead = stream[: at + len(_DATA)]
    between = _BLANK + lead
    end = stream.find(_BLANK, stream.rfind(between) + len(_BLANK))
    texts = stream[len(lead) : end].split(between)
    # The beginning is two lines, and each text is one where all events up to there begin alike.
    if stream.find(_LINE_END) != at or b"".join(texts).find(_LINE_END) >= 0:
        return _events(stream)
    while (at := stream.find(_DATA, end)) >= 0:
        end = stream.find(_LINE_END, at + len(_DATA))
        texts.append(stream[at + len(_DATA) : end])
    return texts


def with_headers(text: bytes, headers: Mapping[str, str]) -> bytes:
    """Returns an event with headers. Codex reads them in any."""
    return b'%b,"%b":%b}' % (text[:-1], HEADERS.encode(), _encode(headers)) if headers else text


def error_text(answer: ErrorAnswer, lane: str | None) -> bytes:
    """Returns the event of an error: with its status, by which Codex knows what it would do over HTTP. Codex reads the
    headers beside the error, and OpenAI's SDKs read them in it."""
    headers = dict(answer.headers)
    error = msgspec.json.decode(answer.body)["error"]
    event = {"type": "error", "status": answer.status, "error": {**error, HEADERS: headers}, HEADERS: headers}
    return _encode(event if lane is None else {**event, LANE: lane})


def _text(value: msgspec.Raw | None) -> str | None:
    """Returns the text of a value that is one."""
    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=str)
    except msgspec.DecodeError:
        return None
