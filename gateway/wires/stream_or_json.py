"""Decodes a response that is either a stream or one JSON document, for backends that may answer in the other form."""

from collections.abc import Callable
from typing import Final, Protocol

from gateway.core.errors import BackendTruncated
from gateway.core.events import Event

_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
_OPENS_JSON: Final = (b"{", b"[")


class Form(Protocol):
    """One of the two forms of a response. It is closed once, and never after it is `done`."""

    done: bool

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of the next bytes. Raises BackendError."""

    def close(self) -> list[Event]:
        """Return the events at the end of the bytes. Raises BackendError."""


class StreamOrJson:
    """A decoder that chooses the form of a response by its first byte. A subclass sets `_stream` and `_document`, which
    create the two forms. (No constructor here: it would cost each request a call.)"""

    done = False
    _form: Form | None = None
    _stream: Callable[[], Form]
    _document: Callable[[], Form]

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of the next bytes. Raises BackendError."""
        if self._form is None:
            data = data.lstrip(_BLANK)
            if not data:
                return []
            self._form = self._document() if data[:1] in _OPENS_JSON else self._stream()
        events = self._form.feed(data)
        self.done = self._form.done
        return events

    def close(self) -> list[Event]:
        """Return the events at the end of the bytes. Raises BackendTruncated unless the response was complete."""
        if self._form is None:
            raise BackendTruncated("The backend's response is empty.", code="upstream_invalid_response")
        if self.done:
            return []
        self.done = True
        return self._form.close()
