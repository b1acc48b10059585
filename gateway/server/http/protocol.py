"""Parses the bytes of client requests into validated heads and bodies: httptools plus the checks it lacks.

These are: caps for the head, exactly one Host, no version but 1.0 and 1.1, no body in another transfer coding than
chunks (RFC 9112, section 6.1: one that is not undone would be read as it is); trailers never become headers and are
capped too. (httptools itself refuses Content-Length beside Transfer-Encoding, and bare LF.) A client that asks for
another protocol, as some do with every first request, is served over HTTP/1.1, unless it asks for a WebSocket where
there is one.
"""

import asyncio
import math
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import unquote

import httptools
from starlette.types import Scope

from gateway.core.errors import GatewayError
from gateway.dialect import ErrorAnswer
from gateway.server.http.client_connection import ClientConnection
from gateway.server.http.client_connection_state import BUSY, CLIENT_TRANSITIONS, IN_HEAD, ClientState
from gateway.server.http.raw_error_response import BAD_REQUEST, NO_ROOM, raw_error_response
from gateway.server.http.request_body import RequestBody
from gateway.server.http.response_writer import ResponseWriter
from gateway.server.log.logger import LOGGER
from gateway.server.log.request_id import request_id
from gateway.server.log.throttle import LogThrottle

MAX_HEAD: Final = 64 * 1024
MAX_HEADERS: Final = 128
VERSIONS: Final = ("1.0", "1.1")
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}


class HeadError(Exception):
    """Raised for a head that is not accepted."""


class WebSockets(NamedTuple):
    """Where there are WebSockets: whether at a path, and how many bytes one of their messages may have now."""

    serves: Callable[[str], bool]
    most: Callable[[], int]


class HttpProtocol(ClientConnection):
    """The protocol of one connection. `http_protocol` sets the limits on a subclass."""

    max_connections: int = 100_000
    last_descriptor: int = 1_000_000
    # Of the dialect that answers where no request could be read.
    encode_error: Callable[[GatewayError], ErrorAnswer]
    websockets: WebSockets | None = None
    _sent_away = LogThrottle()

    # asyncio gives a protocol of streams a Transport; the stub names the base of all transports.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        super().connection_made(transport)
        self._url = b""
        # Names and values alternate, of a head or of trailers.
        self._lines: list[bytes] = []
        # Bytes received since the parser reported the end of a head, or part of a body.
        self._head_size = 0
        self._parser: httptools.HttpRequestParser | None = self._new_parser()
        descriptor: int = transport.get_extra_info("socket").fileno()
        if len(self.connections) > self.max_connections or descriptor > self.last_descriptor:
            self._send_away()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # The parser refers to this protocol.
        self._parser = None

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self.transport.is_closing():
            return
        self._head_size += len(data)
        try:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as stopped:
                rest = data[stopped.args[0] :]
                if self._upgrade(self._parser, rest):
                    return
                self._stay(self._parser, rest)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, HeadError):
            self._refuse_request()
        if self._head_size > MAX_HEAD:
            self._refuse_request()
        if self.state in IN_HEAD and self.due == math.inf:
            self.expect(self.header_timeout_s)

    def on_message_begin(self) -> None:
        if self.state not in IN_HEAD:
            # The deadline starts with the next head, not with any byte: a discarded body would otherwise keep the
            # connection open without a limit.
            self.state = CLIENT_TRANSITIONS[self.state]["head"]
            self.due = math.inf
        self._head_size = 0
        self._url = b""
        self._lines.clear()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += (name, value)

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        if parser.should_upgrade():
            return
        self.due = math.inf
        self._head_size = 0
        version = parser.get_http_version()
        headers = self._headers()
        self._lines.clear()
        named = dict(headers)
        if len(named) != len(headers) and [name for name, _ in headers].count(b"host") > 1:
            raise HeadError
        if version not in VERSIONS or (b"host" not in named and version == "1.1"):
            raise HeadError
        if b"transfer-encoding" in named and not _is_chunked(headers):
            raise HeadError
        method = parser.get_method().decode("ascii")
        path, query = _target(self._url)
        # A client of HTTP/1.0 does not know interim responses (RFC 9110, section 10.1.1).
        expects = b"expect" in named and version != "1.0" and named[b"expect"].lower() == b"100-continue"
        writer = ResponseWriter(
            self,
            RequestBody(self.transport, self.flow, expects),
            method,
            version,
            version != "1.0" and parser.should_keep_alive(),
        )
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": "http",
            "root_path": "",
            "method": method,
            "path": unquote(path) if "%" in path else path,
            "raw_path": path.encode("ascii"),
            "query_string": query,
            "headers": headers,
            "state": {**self.app_state, "response_writer": writer},
        }
        self.begin(writer, scope)

    def on_body(self, body: bytes) -> None:
        self._head_size = 0
        if self.latest is not None:
            self.latest.request_body.feed(body)

    def on_message_complete(self) -> None:
        self._head_size = 0
        # Within a head, the request asks for another protocol, and its head is parsed once more.
        if self.state not in IN_HEAD and self.latest is not None:
            # The gateway does not use trailers; the same limits apply to them.
            if self._lines:
                self._headers()
            self.latest.request_body.close()

    def _headers(self) -> list[tuple[bytes, bytes]]:
        """Returns the headers or trailers received, names in lower case. Raises HeadError when they exceed the
        limits."""
        lines = self._lines
        if len(lines) > 2 * MAX_HEADERS or len(self._url) + len(b"".join(lines)) > MAX_HEAD:
            raise HeadError
        return list(zip(map(bytes.lower, lines[::2]), lines[1::2], strict=True))

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self)
        # A request after one with "Connection: close" is dropped; it does not interrupt the response to that one.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _upgrade(self, parser: httptools.HttpRequestParser, rest: bytes) -> bool:
        """Hands the connection over to a WebSocket where the head asks for one, at a path that has one, and no response
        is due. Returns whether it did."""
        if self.websockets is None or self.state is not ClientState.HEAD:
            return False
        if parser.get_method() != b"GET" or parser.get_http_version() != "1.1":
            return False
        headers = self._headers()
        path, query = _target(self._url)
        asked = [value.lower() for name, value in headers if name == b"upgrade"]
        if asked != [b"websocket"] or not self.websockets.serves(path):
            return False
        # Loaded with the first one.
        from gateway.server.http.websocket_handshake import is_upgrade
        from gateway.server.http.websocket_protocol import WebSocketProtocol

        if not is_upgrade(headers):
            return False
        scope: Scope = {
            "type": "websocket",
            "asgi": _ASGI,
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": "ws",
            "root_path": "",
            "path": path,
            "raw_path": path.encode("ascii"),
            "query_string": query,
            "headers": headers,
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
            "state": self.app_state,
        }
        protocol = WebSocketProtocol(
            self.app, self.server_state, self.transport, scope, self.websockets.most(), self.write_timeout_s()
        )
        # To this protocol the connection is lost, and its deadlines with it.
        self.connection_lost(None)
        protocol.begin(rest)
        return True

    def _stay(self, parser: httptools.HttpRequestParser, rest: bytes) -> None:
        """Parses the head once more without its Upgrade header, which a server may ignore (RFC 9110, section 7.8): the
        parser takes all bytes after an Upgrade, even the request's own body, as another protocol."""
        method, version = parser.get_method(), parser.get_http_version().encode("ascii")
        if method == b"CONNECT":
            raise httptools.HttpParserUpgrade
        head = [b"%s %s HTTP/%s" % (method, self._url, version)]
        head += [name + b": " + value for name, value in self._headers() if name != b"upgrade"]
        self._parser = self._new_parser()
        self._parser.feed_data(b"\r\n".join(head) + b"\r\n\r\n" + rest)

    def _refuse_request(self) -> None:
        if self.transport.is_closing():
            return
        if self.state in BUSY and self.served is not None and self.served.started:
            # A response is being sent: the client would read a second one within it as a part of it.
            self.transport.abort()
            return
        given = self._refuse(BAD_REQUEST)
        LOGGER.info("refused a connection: 400 Bad Request", extra={"request_id": given})

    def _send_away(self) -> None:
        given = self._refuse(NO_ROOM)
        if count := self._sent_away.count(self.loop.time()):
            LOGGER.warning(
                "refused %d connections for lack of capacity since the last such line",
                count,
                extra={"request_id": given},
            )

    def _refuse(self, error: GatewayError) -> str:
        given = request_id(None)
        self.transport.write(raw_error_response(self.encode_error(error), given))
        self.transport.close()
        return given


def _is_chunked(headers: list[tuple[bytes, bytes]]) -> bool:
    codings = [value.strip().lower() for name, value in headers if name == b"transfer-encoding"]
    return codings == [b"chunked"]


def _target(url: bytes) -> tuple[str, bytes]:
    """Returns the path as it was sent, and the query. Raises HeadError and httptools' and Unicode's own errors."""
    # Not `in`: for bytes it first tries a number, and takes ten times as long.
    if url.startswith(b"/") and url.find(b"#") < 0:
        path, _, query = url.partition(b"?")
        return path.decode("ascii"), query
    parsed = httptools.parse_url(url)
    if parsed.path is None:
        raise HeadError
    return parsed.path.decode("ascii"), parsed.query or b""


def http_protocol(
    header_timeout_s: float,
    write_timeout_s: Callable[[], float],
    max_connections: int,
    last_descriptor: int,
    encode_error: Callable[[GatewayError], ErrorAnswer],
    websockets: WebSockets | None = None,
) -> type[HttpProtocol]:
    """Returns the protocol class for uvicorn, with a deadline for the head of every request and for clients that read
    nothing, with the maximum number of connections and the highest descriptor that a connection may have, with the
    encoder of errors that precede any request, and with where there are WebSockets."""
    limits = {
        "header_timeout_s": header_timeout_s,
        "write_timeout_s": staticmethod(write_timeout_s),
        "max_connections": max_connections,
        "last_descriptor": last_descriptor,
        "encode_error": staticmethod(encode_error),
        "websockets": websockets,
        "_sent_away": LogThrottle(),
    }
    return type("HttpProtocol", (HttpProtocol,), limits)
