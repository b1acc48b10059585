"""The ways to a server: which program, through which proxy, over which carriers."""

import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final

import msgspec

from tests.adapters.proto.backend.services import SET
from tests.grpc_servers.cases import ANSWERS, METHODS
from tests.grpc_servers.envoy import envoy
from tests.grpc_servers.installed import FOLDER, missing, python
from tests.grpc_servers.proxies import nghttpx, nginx
from tests.grpc_servers.server_process import ScriptedServer, scripted_server
from tests.paths import ROOT

_PROGRAMS: Final = "tests.grpc_servers.programs"
_NODE: Final = ROOT / "tests" / "grpc_servers" / "programs" / "connect_server.mjs"


class Program(msgspec.Struct, frozen=True):
    """A server: what must be installed for it, its command, and its arguments behind the file with answers."""

    needs: tuple[str, ...]
    command: tuple[str, ...]
    arguments: tuple[str, ...] = METHODS


class Wire(msgspec.Struct, frozen=True):
    """A way to a server: one of its ports, directly or through a proxy."""

    program: str
    carriers: tuple[str, ...]
    port: str = "port"
    proxy: str | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """What must be installed."""
        return (*PROGRAMS[self.program].needs, *([self.proxy] if self.proxy else []))


PROGRAMS: Final[Mapping[str, Program]] = {
    "grpcio": Program((), (sys.executable, "-m", f"{_PROGRAMS}.grpcio_server"), ()),
    "grpclib": Program(
        ("grpclib",), (python("grpclib"), "-m", f"{_PROGRAMS}.grpclib_server"), (str(SET), "v1", *METHODS)
    ),
    "connectrpc": Program(("connect",), (python("connect"), "-m", f"{_PROGRAMS}.connect_server")),
    "connect-node": Program(("node", "package.json"), ("node", str(_NODE), str(FOLDER)), (str(SET),)),
}
PROXIES: Final[Mapping[str, Callable[[Sequence[int]], AbstractAsyncContextManager[list[int]]]]] = {
    "envoy": envoy,
    "nghttpx": nghttpx,
    "nginx": nginx,
}
_GRPC: Final = ("grpc",)
_GRPC_WEB: Final = ("grpc_web", "grpc_web_text")
WIRES: Final[Mapping[str, Wire]] = {
    "grpcio": Wire("grpcio", _GRPC),
    "grpclib": Wire("grpclib", _GRPC),
    "connectrpc": Wire("connectrpc", ("connect",)),
    "connect-node": Wire("connect-node", ("connect", "grpc_web")),
    "connect-node-http2": Wire("connect-node", _GRPC, "http2_port"),
    "envoy-grpcio": Wire("grpcio", (*_GRPC, *_GRPC_WEB), proxy="envoy"),
    "envoy-grpclib": Wire("grpclib", _GRPC_WEB, proxy="envoy"),
    "nghttpx-grpcio": Wire("grpcio", _GRPC, proxy="nghttpx"),
    "nginx-grpcio": Wire("grpcio", _GRPC, proxy="nginx"),
}


class Running(msgspec.Struct, frozen=True):
    """The servers that run, by program, and the address of each wire."""

    servers: Mapping[str, ScriptedServer]
    addresses: Mapping[str, str]


@asynccontextmanager
async def running_wires(names: Collection[str] = WIRES.keys()) -> AsyncIterator[Running]:
    """Run the servers of these wires, as far as they are installed here, and the proxies."""
    wires = {name: wire for name, wire in WIRES.items() if name in names and not missing(*wire.needs)}
    async with AsyncExitStack() as stack:
        servers: dict[str, ScriptedServer] = {}
        for program in dict.fromkeys(wire.program for wire in wires.values()):
            server = scripted_server(PROGRAMS[program].command, ANSWERS, *PROGRAMS[program].arguments)
            servers[program] = await stack.enter_async_context(server)
        ports = {name: servers[wire.program].ports[wire.port] for name, wire in wires.items()}
        for proxy, run in PROXIES.items():
            if proxied := [name for name, wire in wires.items() if wire.proxy == proxy]:
                own = await stack.enter_async_context(run([ports[name] for name in proxied]))
                ports.update(zip(proxied, own, strict=True))
        yield Running(servers, {name: f"http://127.0.0.1:{port}" for name, port in ports.items()})
