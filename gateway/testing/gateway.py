"""Runs a gateway for tests: in the test's own event loop, or as the command that an operator starts.

async with running_gateway({"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}) as gateway:
    response = await gateway.chat()

async with gateway_command(folder, settings, "serve", "--port", "0") as command:
    await command.wait_ready()

A test that runs another program beside it starts that with `python_process`.
"""

import asyncio
import contextlib
import json
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import msgspec

from gateway.core.conversation import Json
from gateway.server.api.app import Gateway, create_app
from gateway.server.process.gateway_server import GatewayServer
from gateway.server.process.listener import address, bind
from gateway.settings import read_settings

# What every gateway of a test has, unless its settings say otherwise: no client keys, no log file.
DEFAULTS: Final[Mapping[str, Mapping[str, Json]]] = {"server": {"api_keys_env": None}, "log": {"file": None}}
_ROOT: Final = Path(__file__).parent.parent.parent
# A busy machine may take this long to start or to stop a gateway.
_WAIT_S: Final = 40


class _PromptServer(GatewayServer):
    """Stops as soon as it may. The server itself looks ten times a second whether it should, and then waits another
    tenth; with a gateway for each of a thousand tests that is minutes."""

    def __init__(self, app: Gateway) -> None:
        super().__init__(app, signals=False)
        self._app = app
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Ends what is running, and then serves no more."""
        self._app.gateway_state.stop()
        self.should_exit = True
        self._stopped.set()

    async def main_loop(self) -> None:
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await self._stopped.wait()

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


class RunningGateway:
    """`base_url` is the address without `/v1`; `client` an httpx client on it; `app` the application inside."""

    def __init__(self, app: Gateway, server: _PromptServer, base_url: str, client: httpx.AsyncClient) -> None:
        self.app = app
        self.server = server
        self.base_url = base_url
        self.client = client
        host, _, port = base_url.removeprefix("http://").rpartition(":")
        self.host = host
        self.port = int(port)

    async def chat(self, **fields: Json) -> httpx.Response:
        """Returns the response to `Hello`, or to what the fields say."""
        return await self.client.post("/v1/chat/completions", json={**hello(), **fields})


def hello(model: str = "m") -> dict[str, Json]:
    """Returns the smallest chat request."""
    return {"model": model, "messages": [{"role": "user", "content": "Hello"}]}


@asynccontextmanager
async def running_gateway(settings: Mapping[str, Json]) -> AsyncIterator[RunningGateway]:
    """Serves with these settings (those of settings.json, over `DEFAULTS`; the port is a free one) until the block
    ends.

    Raises SettingsError."""
    known = read_settings(_over_defaults(settings))
    known = msgspec.structs.replace(known, server=msgspec.structs.replace(known.server, port=0))
    app = create_app(known)
    listener = bind(known.server)
    server = _PromptServer(app)
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
            yield RunningGateway(app, server, base_url, client)
    finally:
        server.stop()
        await task
        listener.close()


def _over_defaults(settings: Mapping[str, Json]) -> dict[str, Json]:
    merged = dict(settings)
    for section, defaults in DEFAULTS.items():
        given = settings.get(section, {})
        merged[section] = {**defaults, **given} if isinstance(given, Mapping) else given
    return merged


class GatewayCommand:
    """A started command line: its `process`, what it has `printed`, and its `base_url` once it is ready."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.printed = ""
        self.base_url = ""

    async def wait_ready(self) -> None:
        """Reads what it prints until it has printed its address and how to try it."""
        assert self.process.stdout is not None
        async with asyncio.timeout(_WAIT_S):
            while "Try it" not in self.printed or not self.printed.rstrip().endswith("'"):
                line = await self.process.stdout.readline()
                if not line:
                    break
                self.printed += line.decode()
        found = re.search(r"http://\S+?:\d+", self.printed)
        assert found, self.printed
        self.base_url = found.group()

    async def ended(self) -> tuple[int, str]:
        """Waits until it ends. Returns its exit status and what it wrote to standard error."""
        async with asyncio.timeout(_WAIT_S):
            _, errors = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, (errors or b"").decode()


@asynccontextmanager
async def gateway_command(
    folder: Path,
    settings: Mapping[str, Json] | None,
    *arguments: str,
    stderr: int = asyncio.subprocess.PIPE,
    **environ: str,
) -> AsyncIterator[GatewayCommand]:
    """Runs `dragoman ARGUMENTS` in this folder until the block ends, and kills it there.

    `settings` are written to settings.json as they are (None: there is no such file). `stderr` and `environ` are those
    of `python_process`."""
    if settings is not None:
        (folder / "settings.json").write_text(json.dumps(settings))
    async with python_process(folder, "-m", "gateway", *arguments, stderr=stderr, environ=environ) as process:
        yield GatewayCommand(process)


@asynccontextmanager
async def python_process(
    folder: Path,
    *arguments: str,
    stdin: int | None = None,
    stderr: int = asyncio.subprocess.PIPE,
    environ: Mapping[str, str] = {},
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs `python ARGUMENTS` in this folder until the block ends, and kills it there. Its standard output is a pipe.

    `stdin` and `stderr` are descriptors or constants of `asyncio.subprocess`. The process can import this project. Of
    the variables DRAGOMAN_* it has only those of `environ`."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("DRAGOMAN_")}
    paths = (str(_ROOT), *filter(None, (inherited.get("PYTHONPATH"),)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        cwd=folder,
        env={**inherited, "PYTHONPATH": os.pathsep.join(paths), **environ},
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
