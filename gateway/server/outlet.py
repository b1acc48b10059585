"""One answer's ASGI messages -> the bytes of an HTTP/1.1 response on its connection.

In the place of uvicorn's own `send`, which holds two patterns against every header of every answer and so takes as long
as parsing the request. Whoever answers here makes headers of known names; that no value ends its line is seen in one
look at the whole head.
"""

from collections.abc import Iterable
from typing import Final

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

# RFC 9112, section 6.3.
_BODILESS: Final = frozenset({204, 304})


class Outlet:
    """One answer. Header names are lower case."""

    __slots__ = ("_chunked", "_cycle", "_left")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._chunked = False
        self._left: int | None = None

    async def send(self, message: Message) -> None:
        """Write now; waits while the client is slow. Nothing is written once it has left. Raises RuntimeError for a
        head or a body that would break the framing."""
        cycle = self._cycle
        if cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        if cycle.disconnected:
            return
        if message["type"] == "http.response.start":
            cycle.transport.write(self._head(message["status"], message.get("headers", ())))
            cycle.response_started = True
            cycle.waiting_for_100_continue = False
            return
        last = not message.get("more_body", False)
        if data := self._body(message.get("body", b""), last):
            cycle.transport.write(data)
        if last:
            self._end()

    def _head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        cycle = self._cycle
        head = [STATUS_LINE[status]]
        bodiless = status in _BODILESS or cycle.scope["method"] == "HEAD"
        # A client of the older version takes what comes until the connection ends.
        self._chunked = not bodiless and cycle.scope["http_version"] != "1.0"
        self._left = 0 if bodiless else None
        closing = False
        for name, value in (*cycle.default_headers, *headers):
            head += (name, b": ", value, b"\r\n")
            if name == b"content-length":
                self._chunked = False
                self._left = 0 if bodiless else int(value)
            elif name == b"connection":
                closing = value == b"close"
        lines = len(head) // 4 + 2
        if closing:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            head.append(b"connection: close\r\n")
            lines += 1
        if self._chunked:
            head.append(b"transfer-encoding: chunked\r\n")
            lines += 1
        data = b"".join((*head, b"\r\n"))
        if not data.count(b"\n") == data.count(b"\r") == lines:
            raise RuntimeError("A header of the answer holds a line break.")
        return data

    def _body(self, body: bytes, last: bool) -> bytes:
        if self._chunked:
            end = b"0\r\n\r\n" if last else b""
            return b"%x\r\n%b\r\n%b" % (len(body), body, end) if body else end
        if self._cycle.scope["method"] == "HEAD":
            return b""
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (last and self._left):
                raise RuntimeError("The body of the answer is not as long as its head says.")
        return body

    def _end(self) -> None:
        cycle = self._cycle
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
