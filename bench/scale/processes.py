"""Runs what is measured: gateways before the benchmark's backend, and a store that counts the limits of each agent."""

import contextlib
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench.gateways import CHAT, Running, serve_command, started
from bench.load import Target
from bench.load_test.gateway_process import free_ports
from bench.load_test.store_servers import PROGRAMS, server
from gateway.core.conversation import Json

# A process starts slowly where others keep the processors.
_PATIENCE_S: Final = 90.0
# Nobody reaches them; they are counted for each key all the same.
_LIMITS: Final[Json] = {"requests_per_minute": 1_000_000, "concurrent_streams": 10_000}


class Gateway(msgspec.Struct, frozen=True):
    """A running gateway, and where it takes requests."""

    url: str
    running: Running

    def target(self, agent: int) -> Target:
        """Returns how this agent asks it: with a key of its own."""
        return Target(self.url, (("authorization", f"Bearer {_secret(agent)}"),))


class Store(msgspec.Struct, frozen=True):
    """A running server of a store."""

    port: int
    running: Running


def _secret(agent: int) -> str:
    return f"bench-key-of-agent-{agent:06}"


@asynccontextmanager
async def store(folder: Path) -> AsyncIterator[Store]:
    """A server that keeps nothing on a disk: Redis where it is installed, else Valkey."""
    async with server(
        "redis" if "redis" in PROGRAMS else "valkey", folder, "--maxmemory-policy", "noeviction"
    ) as opened:
        yield Store(opened.port, Running(opened.pid, 0))


@contextlib.contextmanager
def backend(folder: Path, deltas: int, held: int = 0, pinned: bool = True) -> Iterator[str]:
    """The backend, with these arguments of `bench.mock`; with `pinned` on the last core. Yields its base URL."""
    (port,) = free_ports(1)
    command = (sys.executable, "-m", "bench.mock", str(port), str(deltas), str(held))
    with started(command, port, -1 if pinned else None, {}, folder / f"mock{port}.log", _PATIENCE_S):
        yield f"http://127.0.0.1:{port}/v1"


@contextlib.contextmanager
def gateways(
    folder: Path, number: int, base_url: str, agents: int, store_port: int | None, pinned: bool = True
) -> Iterator[Sequence[Gateway]]:
    """So many gateways with a worker each, for so many agents with a key each; with `pinned` on the first core."""
    keys = ",".join(map(_secret, range(agents)))
    with ExitStack() as stack:
        yield [
            Gateway(
                f"http://127.0.0.1:{port}{CHAT}",
                stack.enter_context(
                    started(
                        serve_command(_settings(folder, port, base_url, store_port)),
                        port,
                        0 if pinned else None,
                        {"DRAGOMAN_API_KEYS": keys},
                        folder / f"gateway{port}.err",
                        _PATIENCE_S,
                    )
                ),
            )
            for port in free_ports(number)
        ]


def _settings(folder: Path, port: int, base_url: str, store_port: int | None) -> Path:
    shared = {
        "state": {"store": f"valkey://127.0.0.1:{store_port}", "encrypt": False, "deadline_ms": 1000},
        "keys": {"*": _LIMITS},
    }
    settings = {
        "server": {"port": port},
        "log": {"file": str(folder / f"gateway{port}.log")},
        "backends": {"native": {"adapter": "openai_chat", "base_url": base_url}},
        "models": {"*": {"backend": "native"}},
        **(shared if store_port is not None else {}),
    }
    file = folder / f"settings{port}.json"
    file.write_bytes(msgspec.json.encode(settings))
    return file
