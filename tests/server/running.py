"""A gateway serving on a real socket, in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import msgspec

from gateway.server.app import Gateway, create_app
from gateway.server.run import GatewayServer, address, bind
from gateway.settings import read_settings
from gateway.types import Json


class Running:
    """`base_url` is the address without `/v1`; `client` an httpx client on it; `app` the application inside."""

    def __init__(self, app: Gateway, server: GatewayServer, base_url: str, client: httpx.AsyncClient) -> None:
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
    server = GatewayServer(app, signals=False)
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
        app.services.stop()
        server.should_exit = True
        await task
        listener.close()
