"""A gateway serving on a real socket, in the test's own event loop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import msgspec

from gateway.core.conversation import Json
from gateway.server.api.app import Gateway, create_app
from gateway.server.process.listener import address, bind
from gateway.server.process.run import GatewayServer
from gateway.settings import read_settings


class PromptServer(GatewayServer):
    """Stops as soon as it may. The server itself looks ten times a second whether it should, and then waits another
    tenth; with a gateway for each of a thousand tests that is minutes."""

    def __init__(self, app: Gateway) -> None:
        super().__init__(app, signals=False)
        self._app = app
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """End what is running, and then serve no more."""
        self._app.gateway_state.stop()
        self.should_exit = True
        self._leaving.set()

    async def main_loop(self) -> None:
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await self._leaving.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.gateway_state.drain()
        for server in self.servers:
            server.close()
        for connection in tuple(self.server_state.connections):
            connection.shutdown()
        async with asyncio.timeout(self.config.timeout_graceful_shutdown):
            while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 (neither tells its end)
                await asyncio.sleep(0.002)
        await self.lifespan.shutdown()


class Running:
    """`base_url` is the address without `/v1`; `client` an httpx client on it; `app` the application inside."""

    def __init__(self, app: Gateway, server: PromptServer, base_url: str, client: httpx.AsyncClient) -> None:
        self.app = app
        self.server = server
        self.base_url = base_url
        self.client = client
        host, _, port = base_url.removeprefix("http://").rpartition(":")
        self.host = host
        self.port = int(port)

    async def chat(self, **fields: Json) -> httpx.Response:
        """A whole answer to `Hello`, or to what the fields say."""
        return await self.client.post("/v1/chat/completions", json={**hello(), **fields})


def hello(model: str = "m") -> dict[str, Json]:
    """The smallest request."""
    return {"model": model, "messages": [{"role": "user", "content": "Hello"}]}


@asynccontextmanager
async def running_gateway(settings: Mapping[str, Json]) -> AsyncIterator[Running]:
    """Serve with these settings (those of settings.json; the port is a free one) until the block ends."""
    known = read_settings(dict(settings))
    known = msgspec.structs.replace(known, server=msgspec.structs.replace(known.server, port=0))
    app = create_app(known)
    listener = bind(known.server)
    server = PromptServer(app)
    ready = asyncio.Event()
    server.on_ready = ready.set
    task = asyncio.create_task(server.serve([listener]))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not ready.is_set():
        await task
        raise RuntimeError("the gateway did not start")
    base_url = address(listener)
    try:
        async with httpx.AsyncClient(base_url=base_url, timeout=20, trust_env=False) as client:
            yield Running(app, server, base_url, client)
    finally:
        server.leave()
        await task
        listener.close()
