"""Serves one event of a WebSocket as the POST of the same request, and writes its answer as texts."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from starlette.types import ASGIApp, Message

from gateway.dialect import ErrorAnswer
from gateway.dialects.websocket import WebSocketDialect
from gateway.server.api.answer_steering import AnswerSteering
from gateway.server.api.websocket_steering import ConnectionSteering
from gateway.server.http.flow_control import FlowControl
from gateway.server.http.request_body import RequestBody
from gateway.server.http.response_writer import Headers
from gateway.server.http.websocket_writer import WebSocket
from gateway.server.log.logger import LOGGER
from gateway.server.state.connection_answers import ConnectionMemory
from gateway.server.telemetry.request_context import RequestContext

# These belong to the upgrade, not to the requests.
_OF_UPGRADE: Final = frozenset(
    {b"connection", b"upgrade", b"origin", b"content-type", b"content-length", b"content-encoding", b"expect"}
    | {b"transfer-encoding", b"x-request-id", b"x-codex-turn-metadata"}
)
_HANDSHAKE: Final = b"sec-websocket-"
_ANSWERED: Final = 200
_NONE: Final[Mapping[str, str]] = {}
# Headers of an answer that are about HTTP.
_OF_HTTP: Final = frozenset(
    {b"cache-control", b"connection", b"content-length", b"content-type", b"transfer-encoding", b"x-accel-buffering"}
)


def request_headers(upgrade: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers of each request of a connection: those of its upgrade that are not about it."""
    kept = [pair for pair in upgrade if pair[0] not in _OF_UPGRADE and not pair[0].startswith(_HANDSHAKE)]
    return [*kept, (b"content-type", b"application/json")]


def _told(headers: Headers) -> dict[str, str]:
    """Returns the headers of an answer that say something of it."""
    return {name.decode("ascii"): value.decode("latin-1") for name, value in headers if name not in _OF_HTTP}


class _Arrived(asyncio.Transport):
    """Stands for the connection to a body that has arrived as a whole: there is no reading to pause."""

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class WebSocketRequest:
    """One request of a connection, and the connection as this request sees it: `on_lost` is called once when the client
    disconnects before its answer is complete.

    It is the `Writer` of its response. A response that is no stream is that of a failure."""

    on_lost: Callable[[], None] | None = None

    def __init__(
        self,
        dialect: WebSocketDialect,
        websocket: WebSocket,
        connected: ConnectionSteering,
        steering: AnswerSteering,
        key: str,
        memory: ConnectionMemory,
        continues: str | None,
    ) -> None:
        self.flow = websocket.flow
        self.memory = memory
        self._continues = continues
        arrived = _Arrived()
        self.request_body = RequestBody(arrived, FlowControl(arrived), expects_continue=False)
        self.request_body.feed(steering.body)
        self.request_body.close()
        self._dialect = dialect
        self._event_texts = dialect.event_texts(steering.lane)
        self._websocket = websocket
        self._write = websocket.write
        # The events that were sent last.
        self._sent: Sequence[bytes] = ()
        self._lane = steering.lane
        self._connected = connected
        self.steering = steering
        self._key = key
        # The head of a failure whose body follows, and that of a stream until its first event.
        self._failure: tuple[int, Headers] | None = None
        self._told = _NONE

    @property
    def connection(self) -> "WebSocketRequest":
        return self

    async def serve(self, app: ASGIApp, path: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Has the request served. An answer without its end ends the whole connection: nothing takes it for
        complete."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": None,
            "client": None,
            "scheme": "http",
            "root_path": "",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            # Only the server makes this part of a scope: no client can be another one.
            "state": {"response_writer": self, "client": self},
        }
        try:
            await app(scope, self.request_body.receive, self.send)
        finally:
            if not self.request_body.over:
                LOGGER.error("the application did not complete its response")
                self.cut()

    def join(self, context: RequestContext) -> None:
        """Names the client of the request, whose key was checked when its event came."""
        context.key = self._key

    def lose(self) -> None:
        """Records that the client has disconnected, unless the answer is complete."""
        if not self.request_body.over:
            self.request_body.end()
            if self.on_lost is not None:
                self.on_lost()

    # Peer

    def cut(self) -> None:
        """Closes the whole connection now: its client reads nothing, or this answer can have no end."""
        if not self.request_body.over:
            self.request_body.end()
            self._websocket.cut()

    # Writer

    async def ready(self) -> None:
        """Waits while the client is slow."""
        if self.flow.write_paused and not self.request_body.over:
            await self.flow.drain()

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Sends the event of a failure. What the request continued cannot be continued again, unless steering messages
        wait for a request that does. Source: Open Responses, "WebSocket Continuation"."""
        assert status != _ANSWERED, "every answer over a WebSocket is streamed"
        if self._continues is not None and not self.steering.began_with:
            self.memory.drop(self._continues)
        if not self.request_body.over:
            if not self.steering.automatic:
                answer = ErrorAnswer(status, _told(headers), body)
                self._write((self._dialect.error_text(answer, self._lane),))
            self._connected.refuse(self.steering, status, body)
            self.request_body.end()

    def open(self, status: int, headers: Headers, body: bytes = b"") -> None:
        """Sends the first events, of which the first one has the headers that over HTTP stand in the head."""
        if status == _ANSWERED:
            self._told = _told(headers)
        else:
            self._failure = status, headers
        self.write(body)

    def write(self, body: bytes) -> None:
        """Sends events."""
        if not body or self.request_body.over:
            return
        if self._failure is not None:
            self.whole(*self._failure, body)
        elif texts := self._event_texts(body):
            if not self._sent:
                texts[0] = self._dialect.with_headers(texts[0], self._told)
                self._connected.begin(self.steering, texts[0])
            self._sent = texts
            self._write(texts)
        else:
            # A keep-alive of the stream.
            self._websocket.ping()

    def close(self, body: bytes = b"") -> None:
        """Sends the last events."""
        self.write(body)
        if self._sent:
            self.steering.last = self._sent[-1]
        self.request_body.end()

    async def send(self, message: Message) -> None:
        """Implements the `send` of ASGI, which only the routes without a model use."""
        raise AssertionError("a request over a WebSocket asks a model")
