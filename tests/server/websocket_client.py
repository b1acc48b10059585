"""A client of WebSockets on a raw socket, whose frames wsproto makes: it may send what no other client does."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import msgspec
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, Pong, TextMessage
from wsproto.extensions import PerMessageDeflate
from wsproto.utilities import generate_accept_token

from gateway.core.conversation import Json

PATH: Final = "/v1/responses"
PATIENCE_S: Final = 20
# What differs between two answers.
VARYING: Final = frozenset({"id", "created_at", "completed_at", "item_id", "call_id", "headers"})
LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


class Denied(msgspec.Struct, frozen=True):
    """The answer to an upgrade that is refused."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["error"]["code"])


class Socket:
    """An open WebSocket, with the headers of the answer to its upgrade. `code` is that of the server's close frame;
    1006: there was none."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deflate: bool, headers: Mapping[str, str]
    ) -> None:
        self.headers = headers
        self._reader = reader
        self._writer = writer
        extensions = [PerMessageDeflate(client_no_context_takeover=True, server_no_context_takeover=True)]
        if deflate:
            extensions[0].finalize("permessage-deflate")
        self.connection = Connection(ConnectionType.CLIENT, [*extensions] if deflate else [])
        self._parts: list[str] = []
        self.code = 0
        self.reason = ""
        self.pongs = 0
        self.pings = 0

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def send(self, event: Json) -> None:
        """Sends an event."""
        self.text(json.dumps(event))

    def text(self, text: str) -> None:
        """Sends a text."""
        self.write(self.connection.send(TextMessage(text)))

    def create(self, text: Json = "Hello", **fields: Json) -> None:
        """Asks for an answer."""
        self.send({"type": "response.create", "model": "m", "store": False, "input": text, **fields})

    def close(self) -> None:
        """Begins to close."""
        self.write(self.connection.send(CloseConnection(1000)))

    def kill(self) -> None:
        """Resets the connection."""
        self._writer.transport.abort()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """The events of the server, until it closes."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for event in self.connection.events():
                    match event:
                        case TextMessage():
                            self._parts.append(event.data)
                            if event.message_finished:
                                text = "".join(self._parts)
                                self._parts.clear()
                                yield json.loads(text)
                        case Pong():
                            self.pongs += 1
                        case Ping():
                            self.pings += 1
                        case CloseConnection():
                            self.code, self.reason = event.code, event.reason or ""
                            return
                        case other:
                            raise AssertionError(other)
                if self.code:
                    return
                try:
                    data = await self._reader.read(65536)
                except ConnectionError:
                    data = b""
                if not data:
                    self.code = 1006
                    return
                self.connection.receive_data(data)

    async def event(self) -> dict[str, Any]:
        """The next event."""
        async for event in self.events():
            return event
        raise AssertionError(f"the server closed: {self.code} {self.reason}")

    async def answer(self) -> list[dict[str, Any]]:
        """The events up to the end of the next answer."""
        found = []
        while True:
            found.append(await self.event())
            if found[-1]["type"] in LAST and not (found[-1]["type"] == "error" and "status" not in found[-1]):
                return found

    async def closed(self) -> int:
        """The code with which the server closes; its events are passed over."""
        async for _ in self.events():
            pass
        return self.code


def upgrade(*lines: str, path: str = PATH, host: str = "localhost", key: str | None = None) -> bytes:
    """The head of an opening handshake with more lines."""
    nonce = base64.b64encode(os.urandom(16)).decode() if key is None else key
    head = [
        f"GET {path} HTTP/1.1",
        f"host: {host}",
        "connection: keep-alive, Upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        f"sec-websocket-key: {nonce}",
        *lines,
    ]
    return "\r\n".join([*head, "", ""]).encode("latin-1")


class Place(Protocol):
    """Where a gateway listens."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


async def opened(gateway: Place, head: bytes, deflate: bool = False, more: bytes = b"") -> Socket | Denied:
    """The WebSocket that this head opens, or the answer that refuses it. `more` is sent at once behind the head."""
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(head + more)
    async with asyncio.timeout(PATIENCE_S):
        status, headers = _head(await reader.readuntil(b"\r\n\r\n"))
        if status != 101:
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            writer.close()
            return Denied(status, headers, body)
    sent = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if ": " in line)
    assert headers["sec-websocket-accept"] == generate_accept_token(sent["sec-websocket-key"].encode()).decode()
    assert ("sec-websocket-extensions" in headers) is deflate
    return Socket(reader, writer, deflate, headers)


@asynccontextmanager
async def connected(gateway: Place, *lines: str, deflate: bool = False) -> AsyncIterator[Socket]:
    """An open WebSocket, which is reset at the end."""
    offered = ["sec-websocket-extensions: permessage-deflate; client_max_window_bits"] if deflate else []
    socket = await opened(gateway, upgrade(*lines, *offered), deflate)
    assert isinstance(socket, Socket), socket
    try:
        yield socket
    finally:
        socket.kill()


def same(value: Any) -> Any:
    """A value without what differs between two answers."""
    if isinstance(value, dict):
        return {name: same(inner) for name, inner in value.items() if name not in VARYING}
    return [same(inner) for inner in value] if isinstance(value, list) else value


def texts(events: Iterable[Mapping[str, Any]]) -> str:
    """The text of an answer."""
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.split(": ", 1) for line in lines if line)
    return int(first.split(" ")[1]), {name.lower(): value for name, value in pairs}
