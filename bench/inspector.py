"""Measures what the inspector costs: `python -m bench.inspector`.

Off, on, and on with somebody who watches, in turn, in one run, so that the ratios hold on a machine whose speed varies.
`--minutes` instead loads one that is watched, and prints its memory, which must not grow without end.

The gateway is pinned to core 0, the backend and the load to core 1.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
import uvloop

from bench import payload
from bench.cases import chunk_cpu_us, request_cpu_us, request_ms, requests_per_second, warm
from bench.gateways import BACKEND_PORT, CHAT, KEY, Running, settings_file, started
from bench.load import Target, drive

_PORT: Final = 9201
_ADMIN: Final = "bench-admin-key"
_ENVIRON: Final = {"DRAGOMAN_API_KEYS": KEY, "DRAGOMAN_ADMIN_KEY": _ADMIN}
_BASE: Final = f"http://127.0.0.1:{_PORT}"
_TARGET: Final = Target(_BASE + CHAT, (("authorization", f"Bearer {KEY}"),))
# How the inspector is set in each row, and whether somebody watches.
ROWS: Final[Mapping[str, tuple[Mapping[str, Any], bool]]] = {
    "off": ({"enabled": "off"}, False),
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.inspector", description="Measure what the inspector costs.")
    parser.add_argument("--seconds", type=float, default=2, help="how long each case is repeated")
    parser.add_argument("--rounds", type=int, default=3, help="the table shows the medians of so many")
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
                print(_table(_figures(folder, options.rounds, options.seconds)))


def _command(folder: Path, inspector: Mapping[str, Any]) -> tuple[str, ...]:
    return (sys.executable, "-m", "gateway", "serve", "--settings", str(settings_file(folder, inspector=inspector)))


def _figures(folder: Path, rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, list[float]]] = {row: {case: [] for case in _CASES} for row in ROWS}
    for _ in range(rounds):
        for row, (inspector, watched) in ROWS.items():
            with started(_command(folder, inspector), _PORT, 0, _ENVIRON, folder / "inspected.log") as running:
                figures = uvloop.run(_measure(running, seconds, watched))
            for case, value in figures.items():
                found[row][case].append(value)
                print(f"{row}: {case} {value:.4g}", file=sys.stderr)
    return {row: {case: median(values) for case, values in cases.items()} for row, cases in found.items()}


async def _measure(running: Running, seconds: float, watched: bool) -> dict[str, float]:
    model = payload.model()
    async with _watching(watched):
        await warm(_TARGET, model)
        return {case: await measure(_TARGET, running, model, seconds) for case, measure in _CASES.items()}


@asynccontextmanager
async def _watching(watched: bool) -> AsyncIterator[None]:
    """Reads the stream of changes in the background, as an open page does."""
    if not watched:
        yield
        return
    headers = {"authorization": f"Bearer {_ADMIN}"}
    async with (
        httpx.AsyncClient(base_url=_BASE, headers=headers, timeout=None) as client,
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
    inspector = {"enabled": "on", "contents": "always"}
    with started(_command(folder, inspector), _PORT, 0, _ENVIRON, folder / "inspected.log") as running:
        uvloop.run(_load(running, minutes))


async def _load(running: Running, minutes: float) -> None:
    """Loads a gateway, and prints its memory and that of its contents about every ten seconds."""
    print("| minute | requests | memory, MB |\n|---|---|---|")
    begun, requests = time.monotonic(), 0
    async with _watching(True):
        while (passed := time.monotonic() - begun) < 60 * minutes:
            body = payload.request(payload.model(), stream=True, messages=40, size=2000)
            load = await drive(_TARGET, body, connections=16, seconds=10, stream=True)
            requests += len(load.whole)
            print(f"| {passed / 60:.1f} | {requests} | {running.memory_mb:.0f} |", flush=True)


def _table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return the figures in Markdown, each with its ratio to that of the first row."""
    first = next(iter(rows.values()))
    lines = [
        f"| {name} | " + " | ".join(f"{value:.4g} ({value / first[case]:.2f})" for case, value in row.items()) + " |"
        for name, row in rows.items()
    ]
    return "\n".join([f"| inspector | {' | '.join(_CASES)} |", f"|{'---|' * (len(_CASES) + 1)}", *lines])


if __name__ == "__main__":
    main()
