"""Extends uvicorn's httptools protocol: a response ends with its client, and a connection can be broken on purpose."""

import asyncio
import socket
import struct
from typing import Final, Protocol, runtime_checkable

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from gateway.demo.player.playback import FOREVER

_RESET: Final = struct.pack("ii", 1, 0)


def abort(transport: asyncio.Transport, reset: bool) -> None:
    """Closes a connection now, by a reset or by a FIN."""
    if reset:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


@runtime_checkable
class OpenConnection(Protocol):
    """A connection that can be closed; `lost` tells when it is."""

    transport: asyncio.Transport
    lost: asyncio.Event


class DemoConnection(HttpToolsProtocol):
    """One connection; a request finds it in the state of its scope."""

    # Cancelled when the client disconnects; this detects an early disconnect while nothing is written.
    response_task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        super().connection_made(transport)
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.response_task is not None:
            self.response_task.cancel()
        super().connection_lost(exc)
        self.lost.set()
        # uvicorn's keep-alive timer survives a reset, so it is cancelled here.
        self._unset_keepalive_if_required()

    def on_headers_complete(self) -> None:
        state = self.scope["state"]
        super().on_headers_complete()
        # uvicorn has created a task, which begins when everything that was read is parsed.
        state["connection"] = self

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # uvicorn pauses reading in a large body, and a paused transport does not detect a disconnect.
        if not self.pipeline:
            self.flow.resume_reading()

    async def cut(self, reset: bool) -> None:
        """Closes the connection now, by a reset or by a FIN, and returns when it is closed."""
        self.response_task = None
        abort(self.transport, reset)
        await self.lost.wait()


class Http1Server:
    """Serves an application over HTTP/1.1, without uvicorn's server, which polls for shutdown only every tenth of a
    second. `websocket` takes a connection over that asks for a WebSocket; without one, such a request is one like any
    other. `tasks` are the responses in progress."""

    def __init__(self, app: ASGIApp, websocket: type[asyncio.Protocol] | None = None) -> None:
        self._config = Config(
            app,
            ws=websocket or "none",
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            timeout_keep_alive=int(FOREVER),
        )
        self._config.load()
        self._state = ServerState()
        self.tasks = self._state.tasks

    def connect(self) -> DemoConnection:
        """Returns the protocol of a new connection."""
        return DemoConnection(self._config, self._state, {})

    def connections(self) -> list[OpenConnection]:
        """Returns the open connections."""
        return [connection for connection in self._state.connections if isinstance(connection, OpenConnection)]
