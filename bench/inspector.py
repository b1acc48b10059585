"""Measures what the inspector costs: `python -m bench.inspector`.

A gateway is loaded at its limit for a moment with its inspector off and for one with it on, by turns, so that whatever
else slows the machine slows both. A figure is how many requests a second it serves with the inspector on, as a part of
those without: the mean of several gateways, each the median of its turns, and the standard error of that mean. The row
"off" is never switched on, and shows what a figure is worth. `--minutes` instead loads one that is watched, and prints
its memory, which must not grow without end.

The gateway is pinned to core 0, the backend and the load to core 1.
"""

import argparse
import asyncio
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import mean, median, stdev
from typing import Final, TypeAlias

import httpx
import msgspec
import uvloop

from bench import payload
from bench.cases import warm
from bench.gateways import BACKEND_PORT, CHAT, KEY, OWN_PORT, Running, settings_file, started
from bench.load import Target, drive

_BASE_URL: Final = f"http://127.0.0.1:{OWN_PORT}"
_TARGET: Final = Target(_BASE_URL + CHAT, (("authorization", f"Bearer {KEY}"),))
_ADMIN: Final = "bench-admin-key"
_ENVIRON: Final = {"DRAGOMAN_API_KEYS": KEY, "DRAGOMAN_ADMIN_KEY": _ADMIN}


class Row(msgspec.Struct, frozen=True):
    """How the inspector is set, whether it is switched on at all, and whether somebody watches."""

    contents: str = "watched"
    on: bool = True
    watched: bool = False


_ROWS: Final[Mapping[str, Row]] = {
    "off": Row(on=False),
    "on": Row(),
    "on and watched": Row(watched=True),
    "on, all contents": Row(contents="always"),
}
_CONNECTIONS: Final = 16
# Whether the answer is streamed, and of how many messages of how many characters a request consists.
_CASES: Final[Mapping[str, tuple[bool, int, int]]] = {
    "a whole answer": (False, 2, 60),
    "a stream of 100 chunks": (True, 2, 60),
    "the same, to 40 messages of 2 KB": (True, 40, 2000),
}
# What comes first in a turn is not counted: code and memory of the other half of the pair are still in the caches.
_WARM_S: Final = 0.04
_TURN_S: Final = 0.16

# The figures of each case, one for each gateway.
Figures: TypeAlias = dict[str, list[float]]


def main() -> None:
    """Measures and printss."""
    parser = argparse.ArgumentParser(prog="python -m bench.inspector", description="Measure what the inspector costs.")
    parser.add_argument("--gateways", type=int, default=6, help="the table shows the means of so many")
    parser.add_argument("--turns", type=int, default=50, help="how often each gateway is loaded off and on")
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
                print(_table(_figures(folder, options.gateways, options.turns)))


def _figures(folder: Path, gateways: int, turns: int) -> Mapping[str, Figures]:
    """Returns the figures of each row. The rows take turns, so that an hour of the machine is no figure of one."""
    found: dict[str, Figures] = {row: {case: [] for case in _CASES} for row in _ROWS}
    for _ in range(gateways):
        for name, row in _ROWS.items():
            for case, figure in uvloop.run(_compared(folder, row, turns)).items():
                found[name][case].append(figure)
    return found


@contextmanager
def _gateway(folder: Path, contents: str) -> Iterator[Running]:
    """Runs a gateway whose inspector keeps these contents."""
    file = settings_file(folder, "inspected", inspector={"enabled": "on", "contents": contents})
    command = (sys.executable, "-m", "bench.switched_gateway", str(file), str(OWN_PORT))
    with started(command, OWN_PORT, 0, _ENVIRON, folder / "inspected.log") as running:
        yield running


async def _compared(folder: Path, row: Row, turns: int) -> Mapping[str, float]:
    """Returns for each case what a gateway serves with its inspector on, as a part of what it serves without."""
    with _gateway(folder, row.contents) as gateway:
        async with AsyncExitStack() as stack:
            if row.watched:
                await stack.enter_async_context(_watching())
            await warm(_TARGET, payload.model())
            return {
                name: median([await _turn(gateway, row, case, turn) for turn in range(turns)])
                for name, case in _CASES.items()
            }


async def _turn(gateway: Running, row: Row, case: tuple[bool, int, int], number: int) -> float:
    """Loads a gateway once with its inspector off and once with it on, each as often first as second."""
    rates = {}
    for on in (False, True) if number % 2 else (True, False):
        assert gateway.pid is not None
        os.kill(gateway.pid, signal.SIGUSR2 if on and row.on else signal.SIGUSR1)
        await _rate(case, _WARM_S)
        rates[on] = await _rate(case, _TURN_S)
    return rates[True] / rates[False]


async def _rate(case: tuple[bool, int, int], seconds: float) -> float:
    """Loads the gateway, and returns how many requests it serves in a second. Raises RuntimeError where one fails: a
    figure of the others would be none."""
    stream, messages, size = case
    body = payload.request(payload.model(), stream=stream, messages=messages, size=size)
    load = await drive(_TARGET, body, connections=_CONNECTIONS, seconds=seconds, stream=stream)
    if load.errors:
        raise RuntimeError(f"{load.errors} requests failed")
    return load.rate


@asynccontextmanager
async def _watching() -> AsyncIterator[None]:
    """Reads the stream of changes in the background, as an open page does."""
    headers = {"authorization": f"Bearer {_ADMIN}"}
    async with (
        httpx.AsyncClient(base_url=_BASE_URL, headers=headers, timeout=None) as client,
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
    with _gateway(folder, "always") as gateway:
        uvloop.run(_load(gateway, minutes))


async def _load(gateway: Running, minutes: float) -> None:
    """Loads a gateway, and prints its memory and that of its contents about every ten seconds."""
    print("| minute | requests | memory, MB |\n|---|---|---|")
    begun, requests = time.monotonic(), 0
    async with _watching():
        while (passed := time.monotonic() - begun) < 60 * minutes:
            body = payload.request(payload.model(), stream=True, messages=40, size=2000)
            load = await drive(_TARGET, body, connections=_CONNECTIONS, seconds=10, stream=True)
            requests += len(load.whole)
            print(f"| {passed / 60:.1f} | {requests} | {gateway.memory_mb:.0f} |", flush=True)


def _table(rows: Mapping[str, Figures]) -> str:
    """Returns the means in Markdown."""
    lines = [f"| {row} | {' | '.join(map(_cell, figures.values()))} |" for row, figures in rows.items()]
    return "\n".join([f"| inspector | {' | '.join(_CASES)} |", f"|{'---|' * (len(_CASES) + 1)}", *lines])


def _cell(figures: Sequence[float]) -> str:
    error = stdev(figures) / math.sqrt(len(figures)) if len(figures) > 1 else math.nan
    return f"{mean(figures):.3f} ± {error:.3f}"


if __name__ == "__main__":
    main()
