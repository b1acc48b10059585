"""`dragoman serve` as it is, beside a timer in its event loop that writes what only the process itself can count.

`python -m bench.under_load.observed FILE.json serve ...` writes FILE anew twice a second. While FILE.collect
lies beside it, everything that waits for the collector is collected before, and then it is taken away.
"""

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from gateway.cli import main

TICK_S: Final = 0.05
TICKS: Final = 10


class Reading(msgspec.Struct, frozen=True):
    """`blocks`: what the interpreter has allocated and not freed; `late_ms`: how late the timer was at worst lately."""

    tasks: int
    blocks: int
    late_ms: float


class _Observer:
    def __init__(self, loop: asyncio.AbstractEventLoop, file: Path) -> None:
        self._loop = loop
        self._file = file
        self._late = 0.0
        self._left = TICKS
        self._due = loop.time()

    def tick(self) -> None:
        now = self._loop.time()
        self._late = max(self._late, now - self._due)
        self._left -= 1
        if not self._left:
            self._write()
        self._due = self._loop.time() + TICK_S
        self._loop.call_at(self._due, self.tick)

    def _write(self) -> None:
        asked = self._file.with_suffix(".collect")
        collected = asked.exists() and gc.collect() >= 0
        reading = Reading(len(asyncio.all_tasks(self._loop)), sys.getallocatedblocks(), 1000 * self._late)
        fresh = self._file.with_suffix(".new")
        # Where no descriptor is left the old reading stays.
        try:
            fresh.write_bytes(msgspec.json.encode(reading))
            os.replace(fresh, self._file)
            if collected:
                asked.unlink()
        except OSError:
            pass
        self._left = TICKS
        self._late = 0.0


def observe(file: Path) -> None:
    """Every loop that is made from now on is observed."""
    make = uvloop.new_event_loop

    def made() -> uvloop.Loop:
        loop = make()
        loop.call_soon(_Observer(loop, file).tick)
        return loop

    uvloop.new_event_loop = made


if __name__ == "__main__":
    observe(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
