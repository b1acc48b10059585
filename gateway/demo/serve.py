"""A kind of demo backend in, a running one on a loopback socket out."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal

from starlette.routing import Route, Router
from uvicorn import Config
from uvicorn.server import ServerState

from gateway.demo.agent import agent_routes
from gateway.demo.chat import chat_routes
from gateway.demo.connection import Connection
from gateway.demo.playback import FOREVER
from gateway.demo.recorder import RecordedRequest, Recorder
from gateway.demo.text import text_routes

Kind = Literal["agent", "chat", "text"]

KINDS: Final[dict[str, tuple[Callable[[Recorder], list[Route]], str]]] = {
    "agent": (agent_routes, ""),
    "chat": (chat_routes, "/v1"),
    "text": (text_routes, ""),
}


class DemoBackend:
    """A running demo backend. `base_url` is what a backend entry of settings.json would hold."""

    def __init__(self, kind: str, base_url: str, recorder: Recorder) -> None:
        self.kind = kind
        self.base_url = base_url
        self._recorder = recorder

    @property
    def requests(self) -> Sequence[RecordedRequest]:
        """What was asked, oldest first."""
        return tuple(self._recorder.requests)

    @property
    def aborted(self) -> int:
        """How many answers the client left before their end."""
        return self._recorder.aborted

    @property
    def active(self) -> int:
        """How many answers are under way."""
        return self._recorder.active

    async def idle(self) -> None:
        """Wait until no answer is under way."""
        await self._recorder.idle()


@asynccontextmanager
async def serve_demo(kind: str, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[DemoBackend]:
    """Serve one kind of demo backend (`agent`, `chat`, `text`) until the block ends. Raises ValueError for others."""
    if kind not in KINDS:
        raise ValueError(f"there is no demo backend {kind!r}; there are {', '.join(KINDS)}")
    build, prefix = KINDS[kind]
    recorder = Recorder()
    # Of uvicorn no more than its protocol: its server looks only every tenth of a second whether it should end.
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
    server = await asyncio.get_running_loop().create_server(lambda: Connection(config, state, {}), host, port)
    try:
        bound_host, bound_port = server.sockets[0].getsockname()[:2]
        yield DemoBackend(kind, f"http://{bound_host}:{bound_port}{prefix}", recorder)
    finally:
        recorder.closing = True
        await _stop(server, state)


async def _stop(server: asyncio.Server, state: ServerState) -> None:
    """Leave nothing behind: no connection, and no answer under way."""
    server.close()
    connections = [connection for connection in state.connections if isinstance(connection, Connection)]
    for connection in connections:
        connection.transport.abort()
    await asyncio.gather(*(connection.lost.wait() for connection in connections))
    if state.tasks:
        await asyncio.wait(state.tasks)
    await server.wait_closed()
