"""Holds the response of one stream: its head, its body as it arrives, and its trailers. No IO."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.server.upstream.http.errors import HttpError, HttpProtocolError, TooLarge, Truncated
from gateway.server.upstream.http.headers import MAX_HEADERS, decode_headers

# The window of a stream: the number of bytes that a backend may send before any of them is read.
WINDOW: Final = 64 * 1024
_STATUS: Final = re.compile(rb"[2-9][0-9]{2}")
_NONE: Final[Mapping[str, str]] = {}


class StreamResponse:
    """`status` is 0 until the head is complete. Names of headers and trailers are lower case; a repeated one has its
    values joined. `ended`: the response is complete. `error` is what made it end otherwise. `unacknowledged` is the
    number of bytes that were read, and for which no WINDOW_UPDATE was sent yet (RFC 9113, 6.9)."""

    __slots__ = (
        "_chunks",
        "_most",
        "_received",
        "_used",
        "ended",
        "error",
        "headers",
        "status",
        "trailers",
        "unacknowledged",
    )

    def __init__(self, most: int) -> None:
        """Expects a response with a body of at most so many bytes."""
        self.status = 0
        self.headers = _NONE
        self.trailers = _NONE
        self.ended = False
        self.error: HttpError | None = None
        self.unacknowledged = 0
        self._chunks: list[bytes] = []
        self._most = most
        self._received = 0
        # The bytes of the window that the backend has used.
        self._used = 0

    @property
    def waiting(self) -> int:
        """The number of body bytes that are not taken yet."""
        return sum(map(len, self._chunks))

    def read(self) -> bytes:
        """Returns the body bytes received since the last call."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        self.unacknowledged += len(data)
        return data

    def acknowledge(self) -> int:
        """Returns the increment of the window for the bytes that were read since the last call."""
        size, self.unacknowledged = self.unacknowledged, 0
        self._used -= size
        return size

    def fail(self, error: HttpError) -> None:
        """Records the first fault of an incomplete response. Bytes before it can still be read."""
        if not self.ended and self.error is None:
            self.error = error

    def on_head(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        """Takes the fields of the head; the first one is `:status`."""
        (_, status), *lines = fields
        if len(lines) > MAX_HEADERS or not _STATUS.fullmatch(status):
            self.fail(HttpProtocolError())
            return
        self.headers = decode_headers(lines)
        self.status = int(status)

    def on_data(self, data: bytes, size: int) -> None:
        """Takes bytes of the body, which occupied `size` bytes of the window, padding included. Raises
        HttpProtocolError for bytes before the head, or more than the window allows."""
        self._used += size
        if self._used > WINDOW or not (self.status or self.error):
            raise HttpProtocolError
        self.unacknowledged += size - len(data)
        self._received += len(data)
        if self._received > self._most:
            data = data[: max(0, self._most - self._received + len(data))]
            self.fail(TooLarge())
        if data:
            self._chunks.append(data)

    def on_trailers(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        """Takes the fields of the trailers."""
        if len(fields) > MAX_HEADERS:
            self.fail(Truncated())
            return
        self.trailers = decode_headers(fields)

    def on_end(self) -> None:
        """Takes the end of the response."""
        length = self.headers.get("content-length")
        if length is not None and length != str(self._received):
            self.fail(Truncated())
        self.ended = self.error is None
