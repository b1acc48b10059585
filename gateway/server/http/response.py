"""Bytes of a connection in, one answer after the other out: its head, and its body as it arrives. No IO.

The parser is strict: no bare line feeds, no folded headers, never two lengths. What it lets pass is refused here: heads
and trailers without end, other versions, other protocols, other transfer codings.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import httptools

from gateway.server.http.errors import HttpError, HungUp, NotHttp, TooLarge, Truncated

MAX_HEAD: Final = 64 * 1024
MAX_HEADERS: Final = 128
VERSIONS: Final = ("1.0", "1.1")
_USUAL: Final = (
    "access-control-allow-origin",
    "access-control-expose-headers",
    "alt-svc",
    "cache-control",
    "cf-cache-status",
    "cf-ray",
    "connection",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "openai-organization",
    "openai-processing-ms",
    "openai-version",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "vary",
    "via",
    "x-content-type-options",
    "x-request-id",
)


class _Names(dict[bytes, str]):
    """Names as they are written -> in lower case. It does not grow, whatever servers say."""

    def __missing__(self, name: bytes) -> str:
        return name.decode("latin-1").lower()


# Both ways in which servers write what they say always; to look it up is quicker than to decode it.
_NAMES: Final = _Names({written.encode(): name for name in _USUAL for written in (name, name.title())})


class ResponseDecoder:
    """`begin` for every request, then `feed` and at last `close`, and `take` the body meanwhile.

    `status` is 0 until the head is complete. Header names are lower case; a repeated one has its values joined.
    `ended`: the body is complete. `reusable`: and the connection may be used again. `fed` counts the bytes that have
    come, `taken` is that count when the body was last taken.
    """

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
        # Names and values of the head and the words before it, or of the trailer.
        self._lines: list[tuple[bytes, bytes]] = []
        # So many of them belong to words before the head.
        self._between = 0
        self._chunks: list[bytes] = []
        # The parser calls this for every chunk, and there may be hundreds in what is fed at once.
        self.on_body = self._chunks.append
        self._parser = httptools.HttpResponseParser(self)
        self.begin(0)

    def begin(self, most: int) -> None:
        """Expect an answer with a body of at most so many bytes."""
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.ended = False
        self.reusable = False
        self.fed = self.taken = self._told_at = 0
        self._chunks.clear()
        self._left = self._most = most

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere. What came before a fault can be taken still. Raises HttpError."""
        self.fed += len(data)
        chunks = self._chunks
        known = len(chunks)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.reusable = False
            # What lies behind the end belongs to no answer.
            if not self.ended:
                raise self._fault(error) from error
        finally:
            # Only now can the body, of which these bytes are more than all, be too large.
            if self.fed > self._most:
                self._limit()
        if len(chunks) > known:
            self._told_at = self.fed
        # The parser keeps a status line, header, trailer or chunk size to itself until it is complete.
        elif self.fed - self._told_at > MAX_HEAD and not self.ended:
            raise Truncated if self.status else NotHttp

    def close(self, clean: bool = True) -> None:
        """There are no more bytes; `clean`: because the other side said so. Raises HttpError when there should be."""
        self.reusable = False
        if self.ended:
            return
        if not self.status:
            raise HungUp
        if not clean or self.headers.keys() & {"content-length", "transfer-encoding"}:
            raise Truncated
        # A body without a length lasts as long as the connection (RFC 9112, section 6.3).
        self.ended = True

    def release(self) -> None:
        """Nothing will be fed any more. The parser's calls back would keep both alive until the collector comes."""
        del self._parser

    @property
    def begun(self) -> bool:
        """Whether anything of the answer has come."""
        return self.fed > 0

    @property
    def waiting(self) -> int:
        """How many bytes of the body nobody has taken."""
        return sum(map(len, self._chunks))

    def take(self) -> bytes:
        """The body's bytes that have come since the last time."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._left -= len(data)
        self.taken = self.fed
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
        return Truncated() if self.status else NotHttp()

    # What the parser calls:

    def on_message_begin(self) -> None:
        if self.ended:
            raise NotHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in VERSIONS or status < 100 or status == 101:
            raise NotHttp
        lines = self._lines
        if len(lines) > MAX_HEADERS or self.fed > MAX_HEAD:
            self._weigh()
        if status < 200:
            # Only a word in between (RFC 9110, section 15.2); it counts towards the size of the head that follows.
            self._between = len(lines)
            return
        if self._between:
            del lines[: self._between]
            self._between = 0
        headers = decode_headers(lines)
        lines.clear()
        if "transfer-encoding" in headers and headers["transfer-encoding"].lower() != "chunked":
            raise NotHttp
        self.headers = headers
        self.status = status
        self._told_at = self.taken = self.fed

    def on_message_complete(self) -> None:
        if self.status:
            # A trailer says nothing that anybody here asks for.
            if self._lines:
                self._weigh()
                self._lines.clear()
            self.ended = True
            self.reusable = self._parser.should_keep_alive()

    def _weigh(self) -> None:
        size = sum(len(name) + len(value) + 2 for name, value in self._lines)
        if size > MAX_HEAD or len(self._lines) > MAX_HEADERS:
            raise Truncated if self.status else NotHttp


def decode_headers(lines: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Names become lower case, repeated ones have their values joined."""
    headers: dict[str, str] = {}
    for name, value in lines:
        headers[_NAMES[name]] = value.decode("latin-1")
    if len(headers) < len(lines):
        headers.clear()
        for name, value in lines:
            before = headers.get(_NAMES[name])
            text = value.decode("latin-1")
            headers[_NAMES[name]] = text if before is None else f"{before}, {text}"
    return headers
