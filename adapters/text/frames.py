"""The bytes of an answer in, its events as bytes out, in each of the framings."""

import codecs
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from gateway.errors import BackendProtocolError
from gateway.wire.ndjson import NDJSONDecoder
from gateway.wire.sse import SSEDecoder

# A whole answer may be larger than any event of a stream.
_EVENTS_PER_ANSWER: Final = 4


class Frames(Protocol):
    """What all framings have in common. Both raise BackendProtocolError; `fault` is one behind whole events."""

    @property
    def fault(self) -> BackendProtocolError | None: ...

    def feed(self, data: bytes) -> list[bytes]: ...

    def tail(self) -> bytes | None: ...


class Bytes:
    """No framing at all: every read is an event."""

    fault = None

    def __init__(self, max_event: int) -> None:
        pass

    def feed(self, data: bytes) -> list[bytes]:
        return [data]

    def tail(self) -> bytes | None:
        return None


class Document:
    """One event, which ends with the body."""

    fault = None

    def __init__(self, max_event: int) -> None:
        self._body = bytearray()
        self._limit = _EVENTS_PER_ANSWER * max_event

    def feed(self, data: bytes) -> list[bytes]:
        self._body += data
        if len(self._body) > self._limit:
            message = f"The backend's answer is larger than {self._limit} bytes."
            raise BackendProtocolError(message, code="upstream_response_too_large")
        return []

    def tail(self) -> bytes | None:
        return bytes(self._body)


FRAMES: Final[Mapping[str, Callable[[int], Frames]]] = {
    "sse": SSEDecoder,
    "sse_text": SSEDecoder,
    "ndjson": NDJSONDecoder,
    "json": Document,
    "text": Bytes,
}


def utf8() -> codecs.IncrementalDecoder:
    """Text whose characters may be cut; what is no UTF-8 becomes U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace")
