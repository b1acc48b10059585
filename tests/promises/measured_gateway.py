"""Runs a gateway in a separate process that reports its memory and the longest delay of its event loop.

`python -m tests.promises.measured_gateway settings.json` prints its address, then for every line on standard input one
line of JSON: the values since the line before. Linux only: the kernel keeps the height of the memory.
"""

import asyncio
import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.testing.gateway import python_process, running_gateway

TICK_S: Final = 0.01
# A busy machine takes tens of seconds to import the gateway.
START_S: Final = 120


class Reading(msgspec.Struct, frozen=True):
    """`peak` and `memory` are the resident memory in bytes, the maximum and the present one; `blocks` are the allocated
    blocks of the interpreter; `stood_still` is the most processor time between two turns of the event loop, and
    `processor` all that the process has used without its readings, in seconds."""

    peak: int
    memory: int
    blocks: int
    descriptors: int
    stood_still: float
    running: int
    processor: float = 0.0


class Probed:
    """The running process. Its readings arrive on its standard output."""

    def __init__(self, process: asyncio.subprocess.Process, base_url: str) -> None:
        self.process = process
        self.base_url = base_url

    async def read(self) -> Reading:
        """Return the values since the last reading."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(b"\n")
        return msgspec.json.decode(await self.process.stdout.readline(), type=Reading)


@asynccontextmanager
async def probed_gateway(folder: Path, settings: Mapping[str, Json]) -> AsyncIterator[Probed]:
    """Run a gateway with these settings until the block ends."""
    (folder / "settings.json").write_text(json.dumps(settings))
    async with python_process(
        folder,
        *("-m", "tests.promises.measured_gateway", "settings.json"),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        async with asyncio.timeout(START_S):
            base_url = (await process.stdout.readline()).decode().strip()
        yield Probed(process, base_url)


class _Loop:
    """Wakes up a hundred times a second and keeps the most that the process has computed in between.

    It counts processor time, because other processes may take the processor from this one for seconds."""

    def __init__(self) -> None:
        self.stood_still = 0.0

    async def run(self) -> None:
        while True:
            before = time.process_time()
            await asyncio.sleep(TICK_S)
            self.stood_still = max(self.stood_still, time.process_time() - before)


def _kilobytes(name: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024


def _read(stood_still: float, running: int, processor: float) -> Reading:
    peak = _kilobytes("VmHWM")
    gc.collect()
    # Memory that the allocator keeps for later belongs to no request.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    descriptors = len(os.listdir("/proc/self/fd"))
    return Reading(peak, _kilobytes("VmRSS"), sys.getallocatedblocks(), descriptors, stood_still, running, processor)


async def _serve(settings: dict[str, Json]) -> None:
    async with running_gateway(settings) as gateway:
        # Objects from before the first request need no collection at each reading.
        gc.collect()
        gc.freeze()
        loop = _Loop()
        watching = asyncio.create_task(loop.run())
        spent = 0.0
        sys.stdout.write(f"{gateway.base_url}\n")
        sys.stdout.flush()
        while await asyncio.to_thread(sys.stdin.readline):
            began = time.process_time()
            reading = _read(loop.stood_still, gateway.app.gateway_state.scheduler.size, began - spent)
            spent += time.process_time() - began
            sys.stdout.write(f"{msgspec.json.encode(reading).decode()}\n")
            sys.stdout.flush()
            await asyncio.sleep(2 * TICK_S)  # the reading itself does not count
            loop.stood_still = 0.0
        watching.cancel()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(Path(sys.argv[1]).read_bytes())))
