"""The data of one SSE event -> one ResponseEvent, whichever way the backend wrote the bytes as text."""

import hashlib
from typing import Final

from google.protobuf.message import DecodeError

from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.errors import BackendProtocolError
from gateway.notices import Notice
from gateway.wire.base64 import decode_base64

_AROUND: Final = b' \t\r\n"'
_SENTINEL: Final = b"[DONE]"
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


def read_frame(data: bytes, limit: int, accept_hex: bool) -> ResponseEvent | None:
    """The event in base64 (or, when accepted, in hexadecimal); None for no data and for a `[DONE]`.

    Quotes around the data are not part of it. Raises BackendProtocolError when neither reading gives a message:
    also for a text field that is not UTF-8, which protobuf forbids.
    """
    text = data.strip(_AROUND)
    if not text or text == _SENTINEL:
        return None
    try:
        event = _parse(decode_base64(text, limit))
    except BackendProtocolError as error:
        written = _read_hex(text) if accept_hex else None
        if written is not None:
            return written
        raise malformed(data, error) from error
    if accept_hex and event.WhichOneof("type") is None:
        return _read_hex(text) or event
    return event


def _parse(payload: bytes) -> ResponseEvent:
    try:
        return ResponseEvent.FromString(payload)
    except (DecodeError, ValueError, RecursionError) as error:
        raise BackendProtocolError("The backend sent an event that is not a protobuf message.") from error


def _read_hex(text: bytes) -> ResponseEvent | None:
    if not _HEX.issuperset(text) or len(text) % 2:
        return None
    try:
        return _parse(bytes.fromhex(text.decode("ascii")))
    except BackendProtocolError:
        return None


def malformed(data: bytes, error: BackendProtocolError) -> BackendProtocolError:
    """The same error with a notice that lets an operator find the event without showing what was in it."""
    digest = hashlib.sha256(data).hexdigest()[:12]
    detail = f"an event of {len(data)} bytes (SHA-256 {digest}...) cannot be read"
    notice = Notice("backend", "failed", "MALFORMED_EVENT", detail, level="warning")
    return BackendProtocolError(error.message, code=error.code, notices=(notice,))
