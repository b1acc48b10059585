"""Decodes the data of one SSE event as one ResponseEvent, from any of the backend's text encodings of bytes."""

from typing import Final

from google.protobuf.message import DecodeError

from adapters.warp.backend.decode.delta_fast_path import DeltaFastPath, Growth
from adapters.warp.backend.decode.output import Output
from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.core.errors import BackendProtocolError
from gateway.core.malformed_event import malformed_event
from gateway.framing.base64 import decode_base64
from gateway.protobuf.utf8_repair import repair_texts

_AROUND: Final = b' \t\r\n"'
_SENTINEL: Final = b"[DONE]"
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


class FrameReader:
    """Reads base64 and, if enabled, hexadecimal. No event may have more than `limit` bytes."""

    def __init__(self, limit: int, accept_hex: bool, output: Output) -> None:
        self._limit = limit
        self._accept_hex = accept_hex
        self._output = output
        self._fast_path = DeltaFastPath()

    def growth(self, data: bytes) -> Growth | None:
        """Returns the appended text of an event in which only the text is new, or None for an event that must be read
        in full."""
        try:
            return self._fast_path.read(decode_base64(data.strip(_AROUND), self._limit))
        except BackendProtocolError:
            return None

    def read(self, data: bytes) -> ResponseEvent | None:
        """Returns the event, or None for no data and for a `[DONE]`. Quotes around the data are not part of it.

        Bytes of a text that are not UTF-8 become U+FFFD, with a notice. Raises BackendProtocolError if no decoding
        gives a message.
        """
        text = data.strip(_AROUND)
        if not text or text == _SENTINEL:
            return None
        try:
            payload = decode_base64(text, self._limit)
            event = self._parse(payload)
        except BackendProtocolError as error:
            written = self._read_hex(text)
            if written is None:
                raise malformed(data, error) from error
            return written
        if self._accept_hex and event.WhichOneof("type") is None:
            return self._read_hex(text) or event
        self._fast_path.learn(payload, event)
        return event

    def _parse(self, payload: bytes) -> ResponseEvent:
        try:
            return ResponseEvent.FromString(payload)
        except (DecodeError, ValueError, RecursionError) as error:
            repaired = repair_texts(payload, ResponseEvent)
            if repaired is None:
                raise BackendProtocolError("The backend sent an event that is not a protobuf message.") from error
        self._output.note_once("changed", "TEXT_MENDED", "bytes of a text that are not UTF-8 became U+FFFD")
        return self._parse(repaired)

    def _read_hex(self, text: bytes) -> ResponseEvent | None:
        if not self._accept_hex or not _HEX.issuperset(text) or len(text) % 2:
            return None
        try:
            return self._parse(bytes.fromhex(text.decode("ascii")))
        except BackendProtocolError:
            return None


def malformed(data: bytes, error: BackendProtocolError) -> BackendProtocolError:
    """Returns the same error with a notice that identifies the event for an operator without its contents."""
    return BackendProtocolError(error.message, code=error.code, notices=(malformed_event(data),))
