"""Starts the machines of deploy/compose.yaml as processes: two gateways with two workers each, a store, and nginx.

They run with deploy/settings.json and deploy/nginx.conf; only the names of hosts and the places of files differ.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import valkey.asyncio

from bench.load_test.store_servers import PROGRAMS, server
from tests.machines.network import Host, network
from tests.paths import ROOT

DEPLOY: Final = ROOT / "deploy"
GATEWAYS: Final = ("gateway1", "gateway2")
# A key without limits for most of the tests, and others whose limits a test reaches.
OWNERS: Final = ("alice", "bob", "carol", "dave", "erin", "frank")
CLIENT_KEYS: Final = {owner: f"sk-{owner}-0123456789" for owner in OWNERS}
STATE_KEY: Final = "5" * 64
PASSWORD: Final = "store-password"
STORE_PORT: Final = 6379
PORTS: Final = {"gateway1": 8000, "gateway2": 8000, "nginx": 8080}
START_S: Final = 60.0


class Cluster:
    """`hosts` by name; `processes` those that run on them."""

    def __init__(self, folder: Path, hosts: Mapping[str, Host], stack: AsyncExitStack) -> None:
        self.hosts = hosts
        self.processes: dict[str, Process] = {}
        self.store_pid = 0
        self.deadline_ms = 0
        self._folder = folder
        self._stack = stack
        self._settings: dict[str, Any] = {}

    @property
    def separate(self) -> bool:
        """Whether the hosts are namespaces, whose network can fail."""
        return bool(self.hosts["store"].inside)

    def url(self, name: str) -> str:
        return f"http://{self.hosts[name].address}:{PORTS[name]}"

    @property
    def admin(self) -> Any:
        """A client of the store itself."""
        return valkey.asyncio.Valkey(host=self.hosts["store"].address, port=STORE_PORT, password=PASSWORD)

    async def start_store(self) -> None:
        host = self.hosts["store"]
        options = ("--requirepass", PASSWORD, "--maxmemory", "256mb", "--maxmemory-policy", "noeviction")
        kind = "redis" if "redis" in PROGRAMS else "valkey"
        running = await self._stack.enter_async_context(
            server(kind, self._folder, *options, port=STORE_PORT, host=host.address, inside=host.inside)
        )
        self.store_pid = running.pid

    async def start_gateway(self, name: str) -> None:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(self._gateway_settings(name)))
        environ = {key: value for key, value in os.environ.items() if not key.startswith("DRAGOMAN_")}
        environ |= {"DRAGOMAN_STATE_KEY": STATE_KEY, "DRAGOMAN_STORE_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT)}
        command = (*self.hosts[name].inside, sys.executable, "-m", "gateway", "serve")
        with (folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=folder, env=environ, stdout=DEVNULL, stderr=log, start_new_session=True
            )
        self._own(name, process)
        await self._ready(name)

    async def start_nginx(self) -> None:
        folder = self._folder / "nginx"
        folder.mkdir(exist_ok=True)
        text = (DEPLOY / "nginx.conf").read_text().replace("/tmp/", f"{folder}/")
        for name in GATEWAYS:
            text = text.replace(f"{name}:", f"{self.hosts[name].address}:")
        text = text.replace("listen 8080", f"listen {self.hosts['nginx'].address}:8080")
        (folder / "nginx.conf").write_text(text)
        run = ("nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr", "-g", "daemon off;")
        with (folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self.hosts["nginx"].inside, *run, stdout=log, stderr=log, start_new_session=True
            )
        self._own("nginx", process)
        await self._ready("nginx")

    async def kill(self, name: str) -> None:
        """kill -9 of a machine: all of its processes at once."""
        if name == "store":
            os.kill(self.store_pid, signal.SIGKILL)
            return
        process = self.processes[name]
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

    def workers(self, name: str) -> list[int]:
        """The process ids of a gateway's workers."""
        parent = self.processes[name].pid
        listed = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        return [int(pid) for pid in listed.split()]

    def log(self, name: str) -> str:
        return (self._folder / name / "log").read_text()

    def change_settings(self, **changes: Any) -> None:
        """Parts of the gateways' settings that differ from the shipped file, before they start."""
        self._settings |= changes

    def _gateway_settings(self, name: str) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads((DEPLOY / "settings.json").read_bytes())
        keys = self._folder / "client_keys"
        keys.write_text("".join(f"{owner}:{key}\n" for owner, key in CLIENT_KEYS.items()))
        settings["server"] |= {"host": self.hosts[name].address, "api_keys_file": str(keys)}
        store = settings["state"]["store"]
        settings["state"]["store"] = re.sub(r"//valkey:", f"//{self.hosts['store'].address}:", store)
        settings["state"]["deadline_ms"] = self.deadline_ms
        return settings | self._settings

    def _own(self, name: str, process: Process) -> None:
        self.processes[name] = process
        self._stack.push_async_callback(_end, process)

    async def _ready(self, name: str) -> None:
        async with asyncio.timeout(START_S), httpx.AsyncClient(trust_env=False) as client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{self.url(name)}/readyz", timeout=2)).status_code == 200:
                        return
                assert self.processes[name].returncode is None, self.log(name)
                await asyncio.sleep(0.1)


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


@asynccontextmanager
async def cluster(folder: Path, deadline_ms: int = 250, **settings: Any) -> AsyncIterator[Cluster]:
    """The machines, all of them ready. `settings` replace parts of deploy/settings.json.

    A busy machine may take longer than the deadline of that file, which only costs what a store remembers."""
    async with network("store", *GATEWAYS, "nginx") as hosts, AsyncExitStack() as stack:
        machines = Cluster(folder, hosts, stack)
        machines.deadline_ms = deadline_ms
        machines.change_settings(**settings)
        await machines.start_store()
        await asyncio.gather(*(machines.start_gateway(name) for name in GATEWAYS))
        await machines.start_nginx()
        yield machines
