"""Reads a response that is one JSON document, for adapters whose backends may answer without a stream."""

from collections.abc import Callable

from adapters.whole_response import EVENTS_PER_RESPONSE, response_too_large
from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.framing.json_text import NotJson, decode_json


class JsonDocument:
    """The form of a response that is one JSON document (`Form`), which `read` turns into events when its bytes have
    ended. `max_event` is the maximum number of bytes of one event of a stream."""

    def __init__(self, read: Callable[[Json], list[Event]], max_event: int) -> None:
        self.done = False
        self._read = read
        self._limit = EVENTS_PER_RESPONSE * max_event
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Event]:
        """Add bytes. Raises BackendProtocolError (`upstream_response_too_large`) above the limit."""
        self._bytes += data
        if len(self._bytes) > self._limit:
            raise response_too_large(self._limit)
        return []

    def close(self) -> list[Event]:
        """Return the events of the whole document. Raises what `decode_body` and `read` raise."""
        return self._read(decode_body(bytes(self._bytes)))


def decode_body(body: bytes) -> Json:
    """Decode a whole body. Raises BackendTruncated if it ends in the middle of its JSON, and BackendProtocolError
    (`upstream_invalid_response`) if it is not JSON."""
    try:
        return decode_json(body, lenient=True)
    except NotJson as error:
        if error.truncated:
            raise BackendTruncated("The backend's response ended in the middle of its JSON.") from error
        message = f"The backend's response is not valid JSON: {error.reason}."
        raise BackendProtocolError(message, code="upstream_invalid_response") from error
