"""Runs one kind of demo backend on a loopback socket."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal, TypeAlias

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from adapters.anthropic_messages.demo.backend import messages_routes
from adapters.gemini.demo.backend import gemini_routes
from adapters.openai_chat.demo.backend import chat_routes
from adapters.openai_responses.demo.backend import responses_routes
from adapters.proto.demo.backend import grpc_routes
from adapters.text.demo.backend import text_routes
from adapters.warp.demo.backend import agent_routes
from gateway.core.conversation import Json
from gateway.demo.faults.catalogue import FAULTS, find_fault
from gateway.demo.faults.playing import Faults
from gateway.demo.player.connection import Http1Server
from gateway.demo.player.endpoint import Endpoint
from gateway.demo.player.http2_connection import Http2Server
from gateway.demo.player.key_check import key_checked
from gateway.demo.player.recorder import RecordedRequest, Recorder
from gateway.demo.scripted_model.dialogue import Model
from gateway.demo.scripted_model.reply import reply

Kind = Literal["agent", "chat", "messages", "responses", "gemini", "text", "grpc"]
DemoServer: TypeAlias = Http1Server | Http2Server


class _Wire(msgspec.Struct, frozen=True):
    """`prefix` is the path of the base_url."""

    routes: Callable[[Recorder, Faults], list[Route]]
    prefix: str = ""
    server: Callable[[ASGIApp], DemoServer] = Http1Server


KINDS: Final[dict[str, _Wire]] = {
    "agent": _Wire(agent_routes),
    "chat": _Wire(chat_routes, "/v1"),
    "messages": _Wire(messages_routes),
    "responses": _Wire(responses_routes, "/v1"),
    "gemini": _Wire(gemini_routes, "/v1beta"),
    "text": _Wire(text_routes),
    "grpc": _Wire(grpc_routes, server=Http2Server),
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

    def as_json(self) -> Json:
        """Returns the requests, and the numbers of responses in progress and aborted, as JSON."""
        return self._recorder.as_json()

    @property
    def aborted(self) -> int:
        """The number of responses that the client aborted."""
        return self._recorder.aborted

    @property
    def active(self) -> int:
        """The number of responses in progress."""
        return self._recorder.active

    async def idle(self) -> None:
        """Waits until no response is in progress."""
        await self._recorder.idle()


@asynccontextmanager
async def serve_demo(
    kind: str,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    defect: str | None = None,
    needs_key: bool = False,
    model: Model = reply,
) -> AsyncIterator[DemoBackend]:
    """Serves one kind of demo backend (a key of `KINDS`) until the block ends, with the fault `defect` in every
    response (a name in `FAULTS[kind]`), or without one. `needs_key`: it refuses every request without the key
    `demo-key`. `model` replies where no fault has a model of its own.

    Raises ValueError for an unknown kind, or a fault that the kind does not have.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no demo backend {kind!r}; there are {', '.join(KINDS)}")
    wire = KINDS[kind]
    recorder = Recorder()
    planted = None if defect is None else find_fault(defect, kind)
    routes = _routes(wire, recorder, Faults(FAULTS[kind], planted, model), needs_key)
    server = wire.server(Router(routes, redirect_slashes=False))
    listening = await asyncio.get_running_loop().create_server(server.connect, host, port)
    try:
        bound_host, bound_port = listening.sockets[0].getsockname()[:2]
        yield DemoBackend(kind, f"http://{bound_host}:{bound_port}{wire.prefix}", recorder)
    finally:
        recorder.closing = True
        await _stop(listening, server)


def _routes(wire: _Wire, recorder: Recorder, faults: Faults, needs_key: bool) -> list[Route]:
    """Returns the routes of the wire; a fault serves all but those that show the record, which need no key."""
    routes = wire.routes(recorder, faults)
    serves = None if faults.planted is None else faults.planted.serves
    for route in routes:
        if isinstance(route.endpoint, Endpoint) and not route.path.startswith("/__"):
            regular = route.endpoint.handler
            served = regular if serves is None else serves(regular, recorder)
            route.endpoint.handler = key_checked(served) if needs_key else served
    return routes


async def _stop(listening: asyncio.Server, server: DemoServer) -> None:
    """Closes every connection and waits for every response in progress."""
    listening.close()
    connections = server.connections()
    for connection in connections:
        connection.transport.abort()
    await asyncio.gather(*(connection.lost.wait() for connection in connections))
    if server.tasks:
        await asyncio.wait(server.tasks)
    await listening.wait_closed()
