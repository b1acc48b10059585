"""Bytes of a connection in, one answer after the other out: its head, and its body as it arrives. No IO.

The parser is strict: no bare line feeds, no folded headers, never two lengths. What it lets pass is refused here: heads
and trailers without end, other versions, other protocols, other transfer codings.
"""

from typing import Final

import httptools

from gateway.server.http.errors import HttpError, HungUp, NotHttp, TooLarge, Truncated

MAX_HEAD: Final = 64 * 1024
MAX_HEADERS: Final = 128
VERSIONS: Final = ("1.0", "1.1")


class ResponseDecoder:
    """`begin` for every request, then `feed` and at last `close`, and `take` the body meanwhile.

    `status` is 0 until the head is complete. Header names are lower case; a repeated one has its values joined.
    `ended`: the body is complete. `reusable`: and the connection may be used again. `waiting` counts the body's bytes
    that nobody has taken.
    """

    __slots__ = (
        "_left",
        "_lines",
        "_parser",
        "_pieces",
        "_told",
        "_untold",
        "ended",
        "headers",
        "reusable",
        "status",
        "waiting",
    )

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self.begin(0)

    def begin(self, most: int) -> None:
        """Expect an answer with a body of at most so many bytes."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self.reusable = False
        self.waiting = 0
        self._pieces.clear()
        self._left = most
        self._lines = self._told = 0
        # The parser keeps a status line, header, trailer or chunk size to itself until it is complete.
        self._untold = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere. What came before a fault can be taken still. Raises HttpError."""
        self._untold += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.reusable = False
            # What lies behind the end belongs to no answer.
            if not self.ended:
                raise self._fault(error) from error
        if self._untold > MAX_HEAD and not self.ended:
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
        return bool(self.status or self._told or self._untold)

    def take(self) -> bytes:
        """The body's bytes that have come since the last time."""
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self.waiting = 0
        return data

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
        self._untold = 0
        self._told += len(name) + len(value)
        self._lines += 1
        if self._told > MAX_HEAD or self._lines > MAX_HEADERS:
            raise Truncated if self.status else NotHttp
        # A trailer says nothing that anybody here asks for.
        if not self.status:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in VERSIONS or status < 100 or status == 101:
            raise NotHttp
        if status < 200:
            # Only a word in between (RFC 9110, section 15.2); it counts towards the size of the head that follows.
            self.headers = {}
            return
        if self.headers.get("transfer-encoding", "chunked").lower() != "chunked":
            raise NotHttp
        self.status = status
        self._lines = self._told = self._untold = 0

    def on_body(self, body: bytes) -> None:
        size = len(body)
        self._untold = 0
        self._left -= size
        if self._left < 0:
            raise TooLarge
        self._pieces.append(body)
        self.waiting += size

    def on_message_complete(self) -> None:
        if self.status:
            self.ended = True
            self.reusable = self._parser.should_keep_alive()
