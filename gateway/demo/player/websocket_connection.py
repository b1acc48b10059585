"""Serves the Responses API over a WebSocket: each message is a request of the route for HTTP, and each event of its
stream becomes a message.

Sources: OpenAI, WebSocket mode of the Responses API; Open Responses, 2026-04-24; RFC 6455.
"""

import asyncio
import re
from typing import Any, Final

import msgspec
from starlette.types import ASGIApp, Message
from uvicorn import Config
from uvicorn.server import ServerState
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Request, TextMessage
from wsproto.extensions import PerMessageDeflate
from wsproto.utilities import LocalProtocolError

from gateway.core.conversation import Json, JsonObject
from gateway.demo.player.playback import FOREVER

# Stands in a scope for a request that has come over a WebSocket.
OVER_WEBSOCKET: Final = "demo.websocket"
_PATH: Final = "/v1/responses"
_BLANK: Final = re.compile(rb"\r?\n\r?\n")
_LAST: Final = frozenset({"response.completed", "response.failed", "response.incomplete", "error"})
_OK: Final = 200


class RefusedUpgrade(asyncio.Protocol):
    """Answers the upgrade to a WebSocket as an API that has none."""

    def __init__(self, config: Config, server_state: ServerState, app_state: object) -> None:
        pass

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        """Sends the status and closes the connection."""
        transport.write(b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        transport.close()


class WebSocketConnection(asyncio.Protocol):
    """One WebSocket. It remembers its responses, so that a request may begin where one of them ended. `response_task`
    is that of the route, and is not cancelled here but with the request in progress."""

    transport: asyncio.Transport
    response_task: asyncio.Task[Any] | None = None

    def __init__(self, config: Config, server_state: ServerState, app_state: object) -> None:
        self._app: ASGIApp = config.loaded_app
        self._connections = server_state.connections
        self._tasks = server_state.tasks
        self._socket = WSConnection(ConnectionType.SERVER)
        self._histories: dict[str, list[Json]] = {}
        self._text = ""
        self._serving: asyncio.Task[None] | None = None
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        """Begins to serve."""
        self.transport = transport
        self._connections.add(self)  # type: ignore[arg-type]  # uvicorn names only its own protocols
        self._serving = asyncio.get_running_loop().create_task(self._serve())
        self._tasks.add(self._serving)
        self._serving.add_done_callback(self._tasks.discard)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the request in progress."""
        self.lost.set()
        if self._serving is not None:
            self._serving.cancel()
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Takes bytes of the client."""
        self._socket.receive_data(data)
        for event in self._socket.events():
            match event:
                case Request():
                    self._write(AcceptConnection(extensions=[PerMessageDeflate()]))
                case TextMessage(data=text, message_finished=finished):
                    self._text += text
                    if finished:
                        self._waiting.put_nowait(self._text)
                        self._text = ""
                case Ping():
                    self._write(event.response())
                case CloseConnection():
                    self._write(event.response())
                    self.transport.close()
                case _:
                    pass

    async def cut(self, reset: bool) -> None:
        """Closes the connection now, and returns when it is closed."""
        self.transport.abort()
        await self.lost.wait()

    def _write(self, event: AcceptConnection | CloseConnection | TextMessage | Any) -> None:  # Any: wsproto's own
        try:
            self.transport.write(self._socket.send(event))
        except LocalProtocolError:
            # The client has closed the WebSocket.
            return

    async def _serve(self) -> None:
        # The route takes the end of the connection as the end of its answer, and returns.
        while not self.lost.is_set():
            try:
                request = msgspec.json.decode(await self._waiting.get(), type=dict)
            except msgspec.DecodeError as error:
                self._refuse(f"the message is not a JSON object: {error}")
                continue
            if request.pop("type", None) == "response.create":
                await self._answer(request)

    async def _answer(self, request: dict[str, Json]) -> None:
        """Answers one request from the route for HTTP."""
        generate = request.pop("generate", True)
        request.pop("stream_id", None)
        known = self._histories.get(str(request.get("previous_response_id")))
        given = request.get("input")
        if known is not None:
            del request["previous_response_id"]
            request["input"] = [*known, *(given if isinstance(given, list) else [])]
        if generate is False:
            self._warm_up(request)
            return
        answer = _Answer(self)
        await self._app(self._scope(), _received({**request, "stream": True}), answer.send)
        response = answer.completed
        if response is None:
            if not answer.ended and not self.lost.is_set():
                self._write(CloseConnection(1000))
                self.transport.close()
            return
        asked, output = request.get("input"), response.get("output")
        if isinstance(asked, list) and isinstance(output, list):
            self._histories[str(response.get("id"))] = [*asked, *output]

    def _refuse(self, words: str) -> None:
        error: Json = {"type": "invalid_request_error", "message": words, "code": None, "param": None}
        self.say(msgspec.json.encode({"type": "error", "status": 400, "error": error, "headers": {}}))

    def _warm_up(self, request: JsonObject) -> None:
        """Remembers what is asked, and writes no answer to it."""
        name, asked = f"resp_demo_warm_{len(self._histories)}", request.get("input")
        self._histories[name] = list(asked) if isinstance(asked, list) else []
        response: dict[str, Json] = {"id": name, "object": "response", "status": "completed", "output": []}
        response["usage"] = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
        for kind, status in (("response.created", "in_progress"), ("response.completed", "completed")):
            self.say(msgspec.json.encode({"type": kind, "response": {**response, "status": status}}))

    def say(self, data: bytes) -> None:
        """Sends one message."""
        self._write(TextMessage(data.decode(errors="replace")))

    def _scope(self) -> dict[str, object]:
        return {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": _PATH,
            "raw_path": _PATH.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "state": {"connection": self},
            "extensions": {OVER_WEBSOCKET: {}},
        }


class _Answer:
    """Sends a response as messages. `completed` is the response of the event that ends it well, `ended` whether an
    event has ended it."""

    def __init__(self, connection: WebSocketConnection) -> None:
        self.completed: JsonObject | None = None
        self.ended = False
        self._connection = connection
        self._status = _OK
        self._headers: dict[str, str] = {}
        self._held = b""

    async def send(self, message: Message) -> None:
        """Takes a message of ASGI."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        self._held += message.get("body", b"")
        if self._headers.get("content-type", "").startswith("text/"):
            *events, self._held = _BLANK.split(self._held)
            for event in events:
                self._event(event)
        elif not message.get("more_body"):
            self._whole()

    def _event(self, event: bytes) -> None:
        lines = [line.removeprefix(b"data:").strip() for line in event.splitlines() if line.startswith(b"data:")]
        if not lines:
            return
        data = b"\n".join(lines)
        self._connection.say(data)
        try:
            found = msgspec.json.decode(data)
        except ValueError:
            return
        if isinstance(found, dict) and found.get("type") in _LAST:
            self.ended = True
            self.completed = found.get("response") if found["type"] == "response.completed" else None

    def _whole(self) -> None:
        """Sends a body that is no stream: an error as an event, and anything else as it is."""
        try:
            body = msgspec.json.decode(self._held)
        except ValueError:
            body = None
        error = body.get("error") if isinstance(body, dict) else None
        if self._status != _OK or error:
            self.ended = True
            # An error in a body with the status 200 has no status here.
            status: dict[str, Json] = {} if self._status == _OK else {"status": self._status}
            told: Json = {"type": "error", **status, "error": error, "headers": dict(self._headers)}
            self._connection.say(msgspec.json.encode(told))
        elif self._held:
            self._connection.say(self._held)


def _received(body: Json) -> Any:  # Any: the type of ASGI's receive is a callable of dictionaries
    """Returns the function that gives a body, and then waits as for a client that stays."""
    sent = False

    async def receive() -> dict[str, object]:
        nonlocal sent
        if sent:
            await asyncio.sleep(FOREVER)
        sent = True
        return {"type": "http.request", "body": msgspec.json.encode(body), "more_body": False}

    return receive
