"""Measures what the inspector costs: `python -m bench.inspector`.

Off, on, and on with somebody who watches: gateways that run at once, loaded in turn, in another order each round, so
that the ratios hold on a machine whose speed varies. Each is the median over the rounds of the ratio to the one that is
off, in that round; a second one that is off shows how far such a ratio can be trusted.
`--minutes` instead loads one that is watched, and prints its memory, which must not grow without end.

The gateways are pinned to core 0, the backend and the load to core 1.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

import httpx
import msgspec
import uvloop

from bench import payload
from bench.cases import chunk_cpu_us, request_cpu_us, request_ms, requests_per_second, warm
from bench.gateways import BACKEND_PORT, CHAT, KEY, Running, settings_file, started
from bench.load import Target, drive

# Of the first gateway; the others have the next ones.
_PORT: Final = 9201
_ADMIN: Final = "bench-admin-key"
_ENVIRON: Final = {"DRAGOMAN_API_KEYS": KEY, "DRAGOMAN_ADMIN_KEY": _ADMIN}
# How the inspector is set in each row, and whether somebody watches.
ROWS: Final[Mapping[str, tuple[Mapping[str, Any], bool]]] = {
    "off": ({"enabled": "off"}, False),
    "off, again": ({"enabled": "off"}, False),
    "on": ({"enabled": "on"}, False),
    "on, all contents": ({"enabled": "on", "contents": "always"}, False),
    "on and watched": ({"enabled": "on"}, True),
}
_CASES: Final = {
    "requests/s": requests_per_second,
    "CPU/request, us": request_cpu_us,
    "request, ms": request_ms,
    "CPU/chunk, us": chunk_cpu_us,
}

Figures: TypeAlias = dict[str, dict[str, list[float]]]


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
    parser.add_argument("--seconds", type=float, default=3, help="how long each case is repeated")
    parser.add_argument("--rounds", type=int, default=6, help="the table shows the medians of so many")
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
                print(_table(uvloop.run(_figures(folder, options.rounds, options.seconds))))


@contextmanager
def _gateway(folder: Path, number: int, inspector: Mapping[str, Any]) -> Iterator[Inspected]:
    """Runs a gateway with these settings of the inspector on a port of its own."""
    port, name = _PORT + number, f"inspected{number}"
    file = settings_file(folder, name, inspector=inspector)
    command = (sys.executable, "-m", "gateway", "serve", "--settings", str(file), "--port", str(port))
    with started(command, port, 0, _ENVIRON, folder / f"{name}.log") as running:
        yield Inspected(running, f"http://127.0.0.1:{port}")


async def _figures(folder: Path, rounds: int, seconds: float) -> Figures:
    found: Figures = {row: {case: [] for case in _CASES} for row in ROWS}
    model = payload.model()
    async with AsyncExitStack() as stack:
        gateways: dict[str, Inspected] = {}
        for number, (row, (inspector, watched)) in enumerate(ROWS.items()):
            gateways[row] = gateway = stack.enter_context(_gateway(folder, number, inspector))
            if watched:
                await stack.enter_async_context(_watching(gateway.base_url))
            await warm(gateway.target, model)
        order = deque(gateways.items())
        for _ in range(rounds):
            order.rotate()
            for case, measure in _CASES.items():
                for row, gateway in order:
                    value = await measure(gateway.target, gateway.running, model, seconds)
                    found[row][case].append(value)
    return found


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


def _table(rows: Figures) -> str:
    """Return the medians in Markdown, each with the median of its ratios to the first row."""
    first = next(iter(rows.values()))
    lines = [
        f"| {name} | "
        + " | ".join(f"{median(values):.4g} ({_ratio(values, first[case]):.2f})" for case, values in row.items())
        + " |"
        for name, row in rows.items()
    ]
    return "\n".join([f"| inspector | {' | '.join(_CASES)} |", f"|{'---|' * (len(_CASES) + 1)}", *lines])


def _ratio(values: list[float], first: list[float]) -> float:
    return median(value / base for value, base in zip(values, first, strict=True))


if __name__ == "__main__":
    main()
