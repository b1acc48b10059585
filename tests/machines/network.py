"""Makes hosts with addresses of their own: network namespaces on a bridge, else addresses of loopback."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec

# Named after this process, so that two runs do not meet.
_RUN: Final = f"dg{os.getpid()}"
_SUBNET: Final = f"10.213.{os.getpid() % 250}"
_SWITCH: Final = f"{_RUN}-switch"


class Host(msgspec.Struct, frozen=True):
    """`inside` is the command that runs a command on this host; empty: the host is an address of loopback."""

    name: str
    address: str
    inside: tuple[str, ...]
    port: str = ""

    async def cut(self, other: "Host") -> None:
        """Let nothing from this host reach the other one."""
        await run(*self.inside, "ip", "route", "add", "blackhole", other.address)

    async def join(self, other: "Host") -> None:
        """Let it reach the other one again."""
        await run(*self.inside, "ip", "route", "del", "blackhole", other.address)

    async def unplug(self) -> None:
        """Take the host off the network."""
        await run("ip", "-n", _SWITCH, "link", "set", self.port, "down")

    async def plug(self) -> None:
        """Put it on the network again."""
        await run("ip", "-n", _SWITCH, "link", "set", self.port, "up")


async def run(*command: str) -> None:
    """Run a command. Raises RuntimeError with what it wrote when it fails."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    written, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {written.decode()}")


@asynccontextmanager
async def network(*names: str) -> AsyncIterator[Mapping[str, Host]]:
    """Hosts of these names, which this process can reach."""
    if not await _has_namespaces():
        yield {name: Host(name, f"127.0.0.{number}", ()) for number, name in enumerate(names, 11)}
        return
    hosts = {
        name: Host(name, f"{_SUBNET}.{number}", ("ip", "netns", "exec", f"{_RUN}-{name}"), f"p{number}")
        for number, name in enumerate(names, 11)
    }
    try:
        await run("ip", "netns", "add", _SWITCH)
        await run("ip", "-n", _SWITCH, "link", "add", "bridge", "type", "bridge")
        await run("ip", "-n", _SWITCH, "link", "set", "bridge", "up")
        await _plug_in(("ip",), _RUN, f"{_SUBNET}.1", "p1", ())
        for name, host in hosts.items():
            await run("ip", "netns", "add", f"{_RUN}-{name}")
            inside = ("ip", "-n", f"{_RUN}-{name}")
            await _plug_in(inside, "eth0", host.address, host.port, ("netns", f"{_RUN}-{name}"))
            await run(*inside, "link", "set", "lo", "up")
        yield hosts
    finally:
        # The kernel ends a namespace, and with it this device, in its own time: the next network has the same name.
        await _remove("link", _RUN)
        for name in (*names, "switch"):
            await _remove("netns", f"{_RUN}-{name}")


async def _remove(kind: str, name: str) -> None:
    # What was not made cannot be removed.
    with contextlib.suppress(RuntimeError):
        await run("ip", kind, "del", name)


async def _plug_in(inside: tuple[str, ...], device: str, address: str, port: str, where: tuple[str, ...]) -> None:
    await run("ip", "link", "add", device, *where, "type", "veth", "peer", "name", port, "netns", _SWITCH)
    await run("ip", "-n", _SWITCH, "link", "set", port, "master", "bridge", "up")
    await run(*inside, "addr", "add", f"{address}/24", "dev", device)
    await run(*inside, "link", "set", device, "up")


async def _has_namespaces() -> bool:
    if shutil.which("ip") is None:
        return False
    try:
        await run("ip", "netns", "add", f"{_RUN}-probe")
        await run("ip", "-n", f"{_RUN}-probe", "link", "add", "probe", "type", "bridge")
    except RuntimeError:
        return False
    finally:
        await _remove("netns", f"{_RUN}-probe")
    return True
