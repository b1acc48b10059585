"""Measures all gateways in all cases and prints their tables: `python -m bench [PART ...]`.

The gateway is pinned to core 0, the backend and the load to core 1.
"""

import argparse
import asyncio
import contextlib
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlsplit

import uvloop

from bench import payload
from bench.agents import add_options, measure_agents, measure_memory
from bench.cases import CASES, STREAMED, warm
from bench.gateways import MeasuredGateway, Running, backend, known, started
from bench.load import Target

Figures = dict[str, list[float]]
# The cases in which a higher figure is better; in all others a lower one is.
_RATES: Final = frozenset({"requests/s", "chunks/s"})


def main() -> None:
    """Measures the named parts and prints their tables."""
    options = _options()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    print(_head())
    for part in options.parts or PARTS:
        with tempfile.TemporaryDirectory() as name:
            print(f"\n{PARTS[part](options, Path(name))}", flush=True)
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end")


def _head() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("uvicorn", "uvloop", "httptools", "msgspec"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    return f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {machine}; {packages}"


def _measure_cases(options: argparse.Namespace, folder: Path) -> str:
    gateways = {**known(folder), **{added: _running(text, options.header) for added, text in options.at}}
    chosen = {key: gateways[key] for key in gateways if not options.only or key in ("direct", *options.only)}
    figures: dict[str, Figures] = {}
    with backend(folder):
        for _ in range(options.rounds):
            for key, gateway in chosen.items():
                _measure(key, gateway, options.seconds, folder, figures)
    return _table({name: _medians(found) for name, found in figures.items()})


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Path], str]]] = {
    "cases": _measure_cases,
    "agents": measure_agents,
    "agents-memory": measure_memory,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure gateways in one and the same way.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--seconds", type=float, default=2, help="how long each case is repeated")
    parser.add_argument("--rounds", type=int, default=1, help="the table shows the medians of so many")
    parser.add_argument("--only", nargs="*", help="names of gateways; the cases always measure `direct`")
    parser.add_argument("--at", nargs=2, action="append", default=[], metavar=("NAME", "URL"), help="one that runs")
    parser.add_argument("--header", action="append", default=[], help="of the requests to those, as 'name: value'")
    add_options(parser)
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}")
    return options


def _running(url: str, headers: Sequence[str]) -> MeasuredGateway:
    pairs = (header.partition(":") for header in headers)
    return MeasuredGateway(Target(url, tuple((name.strip(), value.strip()) for name, _, value in pairs)))


def _measure(name: str, gateway: MeasuredGateway, seconds: float, folder: Path, figures: dict[str, Figures]) -> None:
    with contextlib.ExitStack() as stack:
        running = Running(None, math.nan)
        if gateway.command is not None:
            port = urlsplit(gateway.target.url).port or 80
            log = folder / f"{name}.log"
            running = stack.enter_context(started(gateway.command, port, 0, gateway.environ, log))
        row = figures.setdefault(name, {})
        uvloop.run(_cases(name, gateway.target, running, payload.model(), seconds, tuple(CASES), row))
        for way, streams in gateway.streams.items():
            row = figures.setdefault(f"{name}, {way}", {})
            uvloop.run(_cases(f"{name}, {way}", streams.target, running, streams.model, seconds, STREAMED, row))


async def _cases(
    name: str, target: Target, running: Running, model: str, seconds: float, cases: Sequence[str], row: Figures
) -> None:
    await warm(target, model)
    for case in cases:
        value = await CASES[case](target, running, model, seconds)
        row.setdefault(case, []).append(value)
        print(f"{name}: {case} {value:.4g}", file=sys.stderr)
        await asyncio.sleep(0.2)


def _medians(figures: Figures) -> dict[str, float]:
    return {case: median(values) for case, values in figures.items()}


def _table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the figures in Markdown, followed by the same as ratios to the direct call (1 is as good as no
    gateway)."""
    titles = f"| gateway | {' | '.join(CASES)} |\n|{'---|' * (len(CASES) + 1)}"
    plain = "\n".join(_line(name, [_number(row.get(case)) for case in CASES]) for name, row in rows.items())
    direct = rows["direct"]
    ratios = "\n".join(
        _line(name, [_ratio(case, row.get(case), direct.get(case)) for case in CASES])
        for name, row in rows.items()
        if name != "direct"
    )
    return f"{titles}\n{plain}\n\nTimes a direct call:\n\n{titles}\n{ratios}"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(case: str, value: float | None, direct: float | None) -> str:
    if value is None or direct is None or math.isnan(value) or math.isnan(direct) or not direct:
        return "-"
    return f"{value / direct:.2f}" if case in _RATES else f"{value / direct:.1f}"


if __name__ == "__main__":
    main()
