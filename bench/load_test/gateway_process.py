"""Runs a gateway in front of its backends, each in a separate process, and reads its figures from outside."""

import asyncio
import contextlib
import random
import resource
import socket
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from bench.gateways import CHAT, Running, started
from bench.load import Target
from bench.load_test.instrumented_app import Reading
from gateway.core.conversation import Json

NATIVE: Final = "adapters.openai_chat.backend:OpenAIChatAdapter"
POLL_S: Final = 0.1
COLLECTED_S: Final = 10
# Long timeouts where no timeout is tested, so that a busy machine does not look like a silent backend.
PATIENT: Final[Mapping[str, Json]] = {"connect": 20, "first_byte": 60, "idle": 60, "total": 600}
# Short timeouts for the backend that is silent on purpose.
IMPATIENT: Final[Mapping[str, Json]] = {"connect": 2, "first_byte": 1, "idle": 1, "total": 2}
# Below the ports that Linux (from 32768) and macOS (from 49152) assign.
_NEVER_ASSIGNED: Final = range(20_000, 32_768)
# A fault that only the client can end.
ENDLESS: Final = "an answer without end"


class GatewayProcess(msgspec.Struct, frozen=True):
    """A running gateway. `least_descriptors` is the number of its open descriptors before the first request."""

    target: Target
    running: Running
    folder: Path
    least_descriptors: int

    def read(self) -> Reading:
        """Returns the figures that the gateway wrote about itself, at most a second ago."""
        return msgspec.json.decode((self.folder / "reading.json").read_bytes(), type=Reading)

    async def collect(self) -> Reading:
        """Returns the next reading, after a garbage collection."""
        asked = self.folder / "reading.collect"
        asked.touch()
        for _ in range(int(COLLECTED_S / POLL_S)):
            if not asked.exists():
                break
            await asyncio.sleep(POLL_S)
        return self.read()

    @property
    def log_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob("gateway.*"))

    async def settled(self, descriptors: int, seconds: float = 5) -> int:
        """Returns the number of open descriptors, once it is at most this or the time is over."""
        for _ in range(int(seconds / POLL_S)):
            if self.running.descriptors <= descriptors:
                break
            await asyncio.sleep(POLL_S)
        return self.running.descriptors


class BackendAddresses(msgspec.Struct, frozen=True):
    """Addresses of a backend that responds at once, one that fails as its model's name selects, and the scripted demo
    model."""

    mock: str
    faulty: str
    demo: str


@contextlib.contextmanager
def backends(folder: Path, pinned: bool = False) -> Iterator[BackendAddresses]:
    """Starts the backends; with `pinned` on the last core."""
    ports = free_ports(3)
    mock, faulty, demo = map(str, ports)
    core = -1 if pinned else None
    python = (sys.executable, "-m")
    with (
        started((*python, "bench.mock", mock), ports[0], core, {}, folder / "mock.log"),
        started((*python, "bench.load_test.faulty_backends", faulty, demo), ports[2], core, {}, folder / "failing.log"),
    ):
        yield BackendAddresses(*(f"http://127.0.0.1:{port}" for port in ports))


@contextlib.contextmanager
def gateway_process(
    folder: Path,
    behind: BackendAddresses,
    server: Mapping[str, Json] | None = None,
    descriptors: int = 0,
    pinned: bool = False,
    more: Mapping[str, Json] | None = None,
) -> Iterator[GatewayProcess]:
    """Starts the gateway with this limit of open descriptors (0: the system's limit) and `more` parts of its settings;
    with `pinned` on the first core."""
    (port,) = free_ports(1)
    settings = {**_settings(folder, behind, {"port": port, **(server or {})}), **(more or {})}
    (folder / "settings.json").write_bytes(msgspec.json.encode(settings))
    serve = ("serve", "--settings", f"{folder}/settings.json")
    command = (sys.executable, "-m", "bench.load_test.instrumented_app", f"{folder}/reading.json", *serve)
    limited = ("sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh", *command) if descriptors else command
    with started(limited, port, 0 if pinned else None, {}, folder / "gateway.err") as running:
        yield GatewayProcess(Target(f"http://127.0.0.1:{port}{CHAT}"), running, folder, running.descriptors)


def _settings(folder: Path, behind: BackendAddresses, server: Mapping[str, Json]) -> dict[str, Json]:
    entries: dict[str, dict[str, Json]] = {
        "native": {"adapter": NATIVE, "base_url": f"{behind.mock}/v1"},
        "agent": {"adapter": "adapters.warp.backend:WarpAdapter", "base_url": behind.mock, "rollback": "stream"},
        "text": {"adapter": "adapters.text.backend:TextAdapter", "base_url": behind.mock, "wire": "llama_cpp"},
        "grpc": {"adapter": "proto", "preset": "demo", "base_url": behind.mock},
        "demo": {"adapter": NATIVE, "base_url": f"{behind.demo}/v1"},
    }
    patient: dict[str, Json] = {name: {**entry, "timeouts": dict(PATIENT)} for name, entry in entries.items()}
    faulty: dict[str, Json] = {"adapter": NATIVE, "base_url": f"{behind.faulty}/v1"}
    models: dict[str, Json] = {name: {"backend": name} for name in ("native", "text", "grpc", "demo")}
    return {
        "server": {"api_keys_env": None, **server},
        "log": {"file": str(folder / "gateway.log")},
        # Full after the warm-up: what the inspector keeps may grow up to its limit.
        "inspector": {"keep": 20},
        # So is this, of conversations: it holds the smallest of the large ones, whose messages are few.
        "state": {"prefix_mb": 16},
        "backends": {
            **patient,
            "faulty": {**faulty, "timeouts": dict(IMPATIENT)},
            "endless": {**faulty, "timeouts": dict(PATIENT)},
        },
        "models": {
            **models,
            "agent": {"backend": "agent", "name": "auto"},
            ENDLESS: {"backend": "endless"},
            "*": {"backend": "faulty"},
        },
    }


def free_ports(many: int) -> list[int]:
    """Returns ports of this machine that are unused at the moment.

    The system assigns them to nobody: another process does not get one before it is listened to, and a connection to it
    does not begin at the port itself."""
    free = (port for port in random.sample(_NEVER_ASSIGNED, len(_NEVER_ASSIGNED)) if _is_free(port))
    return list(islice(free, many))


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def allow_descriptors() -> int:
    """Raises the descriptor limit of this process and its children to the maximum. Returns the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
