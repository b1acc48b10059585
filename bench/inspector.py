"""Measures what the inspector costs: `python -m bench.inspector`.

Each row is a gateway that is loaded at the same time as one whose inspector is off, on the same core, so that whatever
else slows the machine slows both; a figure is the ratio of their processor time for a request, the median over the
rounds. The row "off" shows what such a ratio is worth. A gateway that is at its limit serves as many fewer requests.
`--minutes` instead loads one that is watched, and prints its memory, which must not grow without end.

The gateways are pinned to core 0, the backend and the load to core 1.
"""

import argparse
import asyncio
import math
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

import httpx
import msgspec
import uvloop

from bench import payload
from bench.cases import warm
from bench.gateways import BACKEND_PORT, CHAT, KEY, Running, settings_file, started
from bench.load import Target, drive

# Of the first gateway; the others have the next ones.
_PORT: Final = 9201
_ADMIN: Final = "bench-admin-key"
_ENVIRON: Final = {"DRAGOMAN_API_KEYS": KEY, "DRAGOMAN_ADMIN_KEY": _ADMIN}
_OFF: Final[Mapping[str, Any]] = {"enabled": "off"}
# How the inspector is set in each row, and whether somebody watches.
ROWS: Final[Mapping[str, tuple[Mapping[str, Any], bool]]] = {
    "off": (_OFF, False),
    "on": ({"enabled": "on"}, False),
    "on and watched": ({"enabled": "on"}, True),
    "on, all contents": ({"enabled": "on", "contents": "always"}, False),
}
_CONNECTIONS: Final = 16
# Whether the answer is streamed, and of how many messages of how many characters a request consists.
_CASES: Final[Mapping[str, tuple[bool, int, int]]] = {
    "a whole answer": (False, 2, 60),
    "a stream of 100 chunks": (True, 2, 60),
    "the same, to 40 messages of 2 KB": (True, 40, 2000),
}

# The ratios of each case.
Ratios: TypeAlias = dict[str, list[float]]


class Inspected(msgspec.Struct, frozen=True):
    """A gateway that runs."""

    running: Running
    base_url: str

    @property
    def target(self) -> Target:
        """What the load asks."""
        return Target(self.base_url + CHAT, (("authorization", f"Bearer {KEY}"),))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.inspector", description="Measure what the inspector costs.")
    parser.add_argument("--seconds", type=float, default=4, help="how long each pair is loaded in a round")
    parser.add_argument("--rounds", type=int, default=7, help="the table shows the medians of so many")
    parser.add_argument("--minutes", type=float, help="instead: load one that is watched for so long")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    mock = (sys.executable, "-m", "bench.mock", str(BACKEND_PORT))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with started(mock, BACKEND_PORT, 1, {}, folder / "mock.log"):
            if options.minutes:
                _soak(folder, options.minutes)
            else:
                print(_table({row: uvloop.run(_pair(folder, row, options.rounds, options.seconds)) for row in ROWS}))


@contextmanager
def _gateway(folder: Path, number: int, inspector: Mapping[str, Any]) -> Iterator[Inspected]:
    """Runs a gateway with these settings of the inspector on a port of its own."""
    port, name = _PORT + number, f"inspected{number}"
    file = settings_file(folder, name, inspector=inspector)
    command = (sys.executable, "-m", "gateway", "serve", "--settings", str(file), "--port", str(port))
    with started(command, port, 0, _ENVIRON, folder / f"{name}.log") as running:
        yield Inspected(running, f"http://127.0.0.1:{port}")


async def _pair(folder: Path, row: str, rounds: int, seconds: float) -> Ratios:
    """Runs the gateway of a row beside one whose inspector is off, and loads both."""
    inspector, watched = ROWS[row]
    with _gateway(folder, 0, _OFF) as base, _gateway(folder, 1, inspector) as gateway:
        async with AsyncExitStack() as stack:
            if watched:
                await stack.enter_async_context(_watching(gateway.base_url))
            for one in (base, gateway):
                await warm(one.target, payload.model())
            found: Ratios = {case: [] for case in _CASES}
            for _ in range(rounds):
                for case, request in _CASES.items():
                    loaded = (_cost(one, *request, seconds) for one in (base, gateway))
                    of_base, of_row = await asyncio.gather(*loaded)
                    found[case].append(of_row / of_base)
            return found


async def _cost(gateway: Inspected, stream: bool, messages: int, size: int, seconds: float) -> float:
    """Loads a gateway, and returns its processor time for a request."""
    before = gateway.running.cpu_s
    body = payload.request(payload.model(), stream=stream, messages=messages, size=size)
    load = await drive(gateway.target, body, connections=_CONNECTIONS, seconds=seconds, stream=stream)
    return math.nan if load.errors else (gateway.running.cpu_s - before) / len(load.whole)


@asynccontextmanager
async def _watching(base_url: str) -> AsyncIterator[None]:
    """Reads the stream of changes in the background, as an open page does."""
    headers = {"authorization": f"Bearer {_ADMIN}"}
    async with (
        httpx.AsyncClient(base_url=base_url, headers=headers, timeout=None) as client,
        client.stream("GET", "/inspect/api/stream") as stream,
    ):
        assert stream.status_code == 200
        reading = asyncio.create_task(_read(stream))
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.wait((reading,))


async def _read(stream: httpx.Response) -> None:
    async for _ in stream.aiter_raw():
        pass


def _soak(folder: Path, minutes: float) -> None:
    with _gateway(folder, 0, {"enabled": "on", "contents": "always"}) as gateway:
        uvloop.run(_load(gateway, minutes))


async def _load(gateway: Inspected, minutes: float) -> None:
    """Loads a gateway, and prints its memory and that of its contents about every ten seconds."""
    print("| minute | requests | memory, MB |\n|---|---|---|")
    begun, requests = time.monotonic(), 0
    async with _watching(gateway.base_url):
        while (passed := time.monotonic() - begun) < 60 * minutes:
            body = payload.request(payload.model(), stream=True, messages=40, size=2000)
            load = await drive(gateway.target, body, connections=16, seconds=10, stream=True)
            requests += len(load.whole)
            print(f"| {passed / 60:.1f} | {requests} | {gateway.running.memory_mb:.0f} |", flush=True)


def _table(rows: Mapping[str, Ratios]) -> str:
    """Return the medians in Markdown."""
    lines = [
        f"| {row} | " + " | ".join(f"{median(of):.3f}" for of in cases.values()) + " |" for row, cases in rows.items()
    ]
    return "\n".join([f"| inspector | {' | '.join(_CASES)} |", f"|{'---|' * (len(_CASES) + 1)}", *lines])


if __name__ == "__main__":
    main()
