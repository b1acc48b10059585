"""Runs one kind of demo backend on a loopback socket."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal

from starlette.routing import Route, Router
from uvicorn import Config
from uvicorn.server import ServerState

from gateway.core.conversation import Json
from gateway.demo.chat.backend import chat_routes
from gateway.demo.gemini.backend import gemini_routes
from gateway.demo.messages.backend import messages_routes
from gateway.demo.player.connection import DemoConnection
from gateway.demo.player.playback import FOREVER
from gateway.demo.player.recorder import RecordedRequest, Recorder
from gateway.demo.responses.backend import responses_routes
from gateway.demo.text.backend import text_routes
from gateway.demo.warp.backend import agent_routes

Kind = Literal["agent", "chat", "messages", "responses", "gemini", "text"]

KINDS: Final[dict[str, tuple[Callable[[Recorder], list[Route]], str]]] = {
    "agent": (agent_routes, ""),
    "chat": (chat_routes, "/v1"),
    "messages": (messages_routes, ""),
    "responses": (responses_routes, "/v1"),
    "gemini": (gemini_routes, "/v1beta"),
    "text": (text_routes, ""),
}


class DemoBackend:
    """A running demo backend. `base_url` is the value for a backend entry in settings.json."""

    def __init__(self, kind: str, base_url: str, recorder: Recorder) -> None:
        self.kind = kind
        self.base_url = base_url
        self._recorder = recorder

    @property
    def requests(self) -> Sequence[RecordedRequest]:
        """The recorded requests, oldest first."""
        return tuple(self._recorder.requests)

    def show(self) -> Json:
        """Return the requests, and the numbers of responses in progress and aborted, as JSON."""
        return self._recorder.show()

    @property
    def aborted(self) -> int:
        """The number of responses that the client aborted."""
        return self._recorder.aborted

    @property
    def active(self) -> int:
        """The number of responses in progress."""
        return self._recorder.active

    async def idle(self) -> None:
        """Wait until no response is in progress."""
        await self._recorder.idle()


@asynccontextmanager
async def serve_demo(kind: str, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[DemoBackend]:
    """Serve one kind of demo backend (a key of `KINDS`) until the block ends. Raises ValueError for others."""
    if kind not in KINDS:
        raise ValueError(f"there is no demo backend {kind!r}; there are {', '.join(KINDS)}")
    build, prefix = KINDS[kind]
    recorder = Recorder()
    # Only uvicorn's protocol is used, because its server polls for shutdown only every tenth of a second.
    config = Config(
        Router(build(recorder), redirect_slashes=False),
        ws="none",
        lifespan="off",
        interface="asgi3",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        timeout_keep_alive=int(FOREVER),
    )
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(lambda: DemoConnection(config, state, {}), host, port)
    try:
        bound_host, bound_port = server.sockets[0].getsockname()[:2]
        yield DemoBackend(kind, f"http://{bound_host}:{bound_port}{prefix}", recorder)
    finally:
        recorder.closing = True
        await _stop(server, state)


async def _stop(server: asyncio.Server, state: ServerState) -> None:
    """Close every connection and wait for every response in progress."""
    server.close()
    connections = [connection for connection in state.connections if isinstance(connection, DemoConnection)]
    for connection in connections:
        connection.transport.abort()
    await asyncio.gather(*(connection.lost.wait() for connection in connections))
    if state.tasks:
        await asyncio.wait(state.tasks)
    await server.wait_closed()
