"""Splits the bytes of a response into events, for each framing that has events."""

import codecs
from collections.abc import Callable, Mapping
from typing import Final

from gateway.framing.ndjson import NDJSONDecoder
from gateway.framing.sse import SSEDecoder
from gateway.wires.event_stream import Frames


class Bytes:
    """Applies no framing: every read is an event."""

    fault = None

    def __init__(self, max_event: int) -> None:
        pass

    def feed(self, data: bytes) -> list[bytes]:
        return [data]

    def tail(self) -> bytes | None:
        return None


FRAMES: Final[Mapping[str, Callable[[int], Frames]]] = {
    "sse": SSEDecoder,
    "sse_text": SSEDecoder,
    "ndjson": NDJSONDecoder,
    "text": Bytes,
}


def utf8() -> codecs.IncrementalDecoder:
    """Creates a decoder for text whose characters may be split; invalid UTF-8 becomes U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace")
