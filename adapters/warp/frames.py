"""The data of one SSE event -> one ResponseEvent, whichever way the backend wrote the bytes as text."""

from typing import Final

from google.protobuf.message import DecodeError

from adapters.warp.mend import mend_texts
from adapters.warp.multi_agent_pb2 import ResponseEvent
from adapters.warp.output import Output
from adapters.warp.template import Growth, Template
from gateway.errors import BackendProtocolError
from gateway.malformed import malformed_event
from gateway.wire.base64 import decode_base64

_AROUND: Final = b' \t\r\n"'
_SENTINEL: Final = b"[DONE]"
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


class FrameReader:
    """Reads base64 and, when it is accepted, hexadecimal. No event may have more than `limit` bytes."""

    def __init__(self, limit: int, accept_hex: bool, output: Output) -> None:
        self._limit = limit
        self._accept_hex = accept_hex
        self._output = output
        self._template = Template()

    def growth(self, data: bytes) -> Growth | None:
        """What the event stands for when only its text is new; None for one that must be read in full."""
        try:
            return self._template.read(decode_base64(data.strip(_AROUND), self._limit))
        except BackendProtocolError:
            return None

    def read(self, data: bytes) -> ResponseEvent | None:
        """The event; None for no data and for a `[DONE]`. Quotes around the data are no part of it.

        Bytes of a text that are not UTF-8 become U+FFFD, with a notice. Raises BackendProtocolError when no reading
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
        self._template.learn(payload, event)
        return event

    def _parse(self, payload: bytes) -> ResponseEvent:
        try:
            return ResponseEvent.FromString(payload)
        except (DecodeError, ValueError, RecursionError) as error:
            mended = mend_texts(payload, ResponseEvent)
            if mended is None:
                raise BackendProtocolError("The backend sent an event that is not a protobuf message.") from error
        self._output.note_once("changed", "TEXT_MENDED", "bytes of a text that are not UTF-8 became U+FFFD")
        return self._parse(mended)

    def _read_hex(self, text: bytes) -> ResponseEvent | None:
        if not self._accept_hex or not _HEX.issuperset(text) or len(text) % 2:
            return None
        try:
            return self._parse(bytes.fromhex(text.decode("ascii")))
        except BackendProtocolError:
            return None


def malformed(data: bytes, error: BackendProtocolError) -> BackendProtocolError:
    """The same error with a notice that lets an operator find the event without showing what was in it."""
    return BackendProtocolError(error.message, code=error.code, notices=(malformed_event(data),))
