"""Says what agents need: `python -m bench.scale [measure | check]`.

Without a word it writes the tables of docs/scale.md from the figures of the last measurement. `measure` takes these
anew before, best on a machine that does nothing else. `check` compares what is computed and simulated for some agents
with what they cause before two gateways and a store.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from bench.scale.check import GATEWAYS, work
from bench.scale.demand import AGENTS, FIGURES, read_figures
from bench.scale.measurement import measure, where
from bench.scale.simulation import Simulation
from bench.scale.tables import compared, with_tables

PAGE: Final = Path(__file__).parents[2] / "docs" / "scale.md"
SECONDS: Final = 2.0


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("measure", "check"), help="nothing: write the tables")
    parser.add_argument("--seconds", type=float, default=60, help="check: how long the agents are observed")
    parser.add_argument("--agents", type=int, default=100, help="check: how many there are")
    parser.add_argument("--rounds", type=int, default=3, help="measure: of which the medians count")
    options = parser.parse_args()
    if options.what is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    with tempfile.TemporaryDirectory() as name:
        if options.what == "check":
            print(_check(Path(name), options))
            return
        if options.what == "measure":
            figures = asyncio.run(measure(Path(name), SECONDS, options.rounds, _tell))
            FIGURES.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), read_figures()), encoding="utf-8")


def _check(folder: Path, options: argparse.Namespace) -> str:
    measured = asyncio.run(work(folder, options.agents, AGENTS, options.seconds))
    simulated = Simulation(options.agents, GATEWAYS, options.seconds, read_figures()).run()
    return f"{where()}\n\n{compared(options.agents, read_figures(), simulated, measured)}"


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
