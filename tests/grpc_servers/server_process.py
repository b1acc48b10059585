"""Runs a server as a process of its own until a block ends."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.grpc_servers.scripted_answer import ScriptedAnswer, write_answers
from tests.paths import ROOT

# A busy machine may take this long to start one, and to notice that a client has left.
WAIT_S: Final = 60


def free_port() -> int:
    """Return a port for a server that cannot choose one itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@asynccontextmanager
async def server_process(
    command: Sequence[str | Path],
    environ: Mapping[str, str] = {},
    *,
    cwd: Path | None = None,
    stdout: int | None = None,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command until the block ends, and end everything that it started. What it writes to standard error is
    shown if the block fails."""
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            cwd=cwd,
            env={"PATH": os.environ["PATH"], **environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=errors if stdout is None else stdout,
            stderr=errors,
            start_new_session=True,
            limit=64 * 2**20,
        )
        try:
            yield process
        except BaseException:  # whatever ends the test, also a cancellation: what the server said belongs to it
            errors.seek(0)
            sys.stderr.write(errors.read().decode(errors="replace")[-8000:])
            raise
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def accepting(process: asyncio.subprocess.Process, port: int) -> None:
    """Wait until the process accepts connections at this port."""
    async with asyncio.timeout(WAIT_S):
        while True:
            assert process.returncode is None, "the server has ended"
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


class ScriptedServer:
    """A program that plays answers. `ports`: those that it told, by name."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.ports: dict[str, int] = {}

    async def event(self, kind: str, answer: str | None = None) -> dict[str, Any]:
        """Return the next event of this kind and answer, and forget those before it. (Any: JSON.)"""
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            while True:
                line = await self.process.stdout.readline()
                assert line, "the server has ended"
                event: dict[str, Any] = json.loads(line)
                if (event["event"], event.get("answer")) == (kind, answer):
                    return event


@asynccontextmanager
async def scripted_server(
    command: Sequence[str], answers: Mapping[str, ScriptedAnswer], *arguments: str
) -> AsyncIterator[ScriptedServer]:
    """Run `COMMAND FILE ARGUMENTS`, where FILE holds the answers, until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.json"
        write_answers(file, answers)
        environ = {"PYTHONPATH": str(ROOT)}
        async with server_process([*command, file, *arguments], environ, stdout=asyncio.subprocess.PIPE) as process:
            server = ScriptedServer(process)
            ready = await server.event("ready")
            server.ports = {name: port for name, port in ready.items() if name.endswith("port")}
            yield server
