"""Decodes the bytes of a connection into consecutive responses: each head, and its body as it arrives. No IO.

The parser is strict: no bare line feeds, no folded headers, never two lengths. This module refuses what the parser
accepts: heads and trailers without end, other versions, other protocols, other transfer codings.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import httptools

from gateway.server.upstream.http.errors import HttpError, HttpProtocolError, RemoteDisconnected, TooLarge, Truncated
from gateway.server.upstream.http.headers import MAX_HEAD, MAX_HEADERS, decode_headers

VERSIONS: Final = ("1.0", "1.1")


class ResponseDecoder:
    """Call `begin` for every request, then `feed` and at last `close`, and `read` the body meanwhile.

    `status` is 0 until the head is complete. Header names are lower case; a repeated one has its values joined.
    `ended`: the body is complete. `reusable`: and the connection can be reused. `fed` counts the received bytes,
    `taken` is that count when the body was last taken. `trailers` is empty: those of HTTP/1.1 are not used.
    """

    trailers: ClassVar[Mapping[str, str]] = {}

    __slots__ = (
        "_between",
        "_chunks",
        "_left",
        "_lines",
        "_most",
        "_parser",
        "_told_at",
        "ended",
        "fed",
        "headers",
        "on_body",
        "reusable",
        "status",
        "taken",
    )

    def __init__(self) -> None:
        # Names and values of the head and the interim responses before it, or of the trailer.
        self._lines: list[tuple[bytes, bytes]] = []
        # The number of lines that belong to interim responses.
        self._between = 0
        self._chunks: list[bytes] = []
        # The parser calls this for every chunk, and one feed may contain hundreds.
        self.on_body = self._chunks.append
        self._parser = httptools.HttpResponseParser(self)
        self.begin(0)

    def begin(self, most: int) -> None:
        """Expects a response with a body of at most so many bytes."""
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.ended = False
        self.reusable = False
        self.fed = self.taken = self._told_at = 0
        self._chunks.clear()
        self._left = self._most = most

    def feed(self, data: bytes) -> None:
        """Accepts the next bytes, cut anywhere. Bytes before a fault can still be taken. Raises HttpError."""
        self.fed += len(data)
        chunks = self._chunks
        known = len(chunks)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.reusable = False
            # Bytes after the end belong to no response.
            if not self.ended:
                raise self._fault(error) from error
        finally:
            # The body is a part of these bytes, so it can be too large only if they exceed the limit.
            if self.fed > self._most:
                self._limit()
        if len(chunks) > known:
            self._told_at = self.fed
        # The parser reports a status line, header, trailer or chunk size only when it is complete.
        elif self.fed - self._told_at > MAX_HEAD and not self.ended:
            raise Truncated if self.status else HttpProtocolError

    def close(self, clean: bool = True) -> None:
        """Marks the end of the bytes; `clean`: the other side closed the connection in order. Raises HttpError when the
        response is incomplete."""
        self.reusable = False
        if self.ended:
            return
        if not self.status:
            raise RemoteDisconnected
        if not clean or self.headers.keys() & {"content-length", "transfer-encoding"}:
            raise Truncated
        # A body without a length lasts as long as the connection (RFC 9112, section 6.3).
        self.ended = True

    def release(self) -> None:
        """Drops the parser, which gets no more bytes. Its callbacks would keep both objects alive until a garbage
        collection."""
        del self._parser

    @property
    def begun(self) -> bool:
        """Whether any byte of the response has arrived."""
        return self.fed > 0

    @property
    def waiting(self) -> int:
        """The number of body bytes that are not taken yet."""
        return sum(map(len, self._chunks))

    def read(self) -> bytes:
        """Returns the body bytes received since the last call."""
        self.taken = self.fed
        if not self._chunks:
            return b""
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._left -= len(data)
        return data

    def _limit(self) -> None:
        if self.waiting > self._left:
            self._chunks[:] = [b"".join(self._chunks)[: self._left]]
            self.ended = self.reusable = False
            raise TooLarge

    def _fault(self, error: Exception) -> HttpError:
        refused = error.__context__
        if isinstance(refused, HttpError):
            return refused
        return Truncated() if self.status else HttpProtocolError()

    # Methods for the parser:

    def on_message_begin(self) -> None:
        if self.ended:
            raise HttpProtocolError

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in VERSIONS or status < 100 or status == 101:
            raise HttpProtocolError
        lines = self._lines
        if len(lines) > MAX_HEADERS or self.fed > MAX_HEAD:
            self._weigh()
        if status < 200:
            # An interim response (RFC 9110, section 15.2); it counts towards the size of the head that follows.
            self._between = len(lines)
            return
        if self._between:
            del lines[: self._between]
            self._between = 0
        headers = decode_headers(lines)
        lines.clear()
        if "transfer-encoding" in headers and headers["transfer-encoding"].lower() != "chunked":
            raise HttpProtocolError
        self.headers = headers
        self.status = status
        self._told_at = self.taken = self.fed

    def on_message_complete(self) -> None:
        if self.status:
            # The gateway does not use trailers.
            if self._lines:
                self._weigh()
                self._lines.clear()
            self.ended = True
            self.reusable = self._parser.should_keep_alive()

    def _weigh(self) -> None:
        size = sum(len(name) + len(value) + 2 for name, value in self._lines)
        if size > MAX_HEAD or len(self._lines) > MAX_HEADERS:
            raise Truncated if self.status else HttpProtocolError
