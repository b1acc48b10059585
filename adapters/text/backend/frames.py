"""Splits the bytes of a response into events, for each framing."""

import codecs
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from gateway.core.errors import BackendProtocolError
from gateway.framing.ndjson import NDJSONDecoder
from gateway.framing.sse import SSEDecoder
from gateway.wires.whole_response import EVENTS_PER_RESPONSE, response_too_large


class Frames(Protocol):
    """The interface of all framings. Both methods raise BackendProtocolError; `fault` holds an error that occurred
    after whole events."""

    @property
    def fault(self) -> BackendProtocolError | None: ...

    def feed(self, data: bytes) -> list[bytes]: ...

    def tail(self) -> bytes | None: ...


class Bytes:
    """Applies no framing: every read is an event."""

    fault = None

    def __init__(self, max_event: int) -> None:
        pass

    def feed(self, data: bytes) -> list[bytes]:
        return [data]

    def tail(self) -> bytes | None:
        return None


class WholeBody:
    """Collects one event that ends with the body."""

    fault = None

    def __init__(self, max_event: int) -> None:
        self._body = bytearray()
        self._limit = EVENTS_PER_RESPONSE * max_event

    def feed(self, data: bytes) -> list[bytes]:
        self._body += data
        if len(self._body) > self._limit:
            raise response_too_large(self._limit)
        return []

    def tail(self) -> bytes | None:
        return bytes(self._body)


FRAMES: Final[Mapping[str, Callable[[int], Frames]]] = {
    "sse": SSEDecoder,
    "sse_text": SSEDecoder,
    "ndjson": NDJSONDecoder,
    "json": WholeBody,
    "text": Bytes,
}


def utf8() -> codecs.IncrementalDecoder:
    """Create a decoder for text whose characters may be split; invalid UTF-8 becomes U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace")
