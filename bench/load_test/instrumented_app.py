"""Runs `dragoman serve` unchanged, with a timer in its event loop that writes process-internal figures to a file.

`python -m bench.load_test.instrumented_app FILE.json serve ...` rewrites FILE twice a second. If FILE.collect exists
beside it, the timer runs a garbage collection first and then removes it.
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
    """`blocks`: the interpreter's allocated blocks; `late_ms`: the greatest delay of the timer since the last
    reading."""

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
        # If no descriptor is left, the old reading remains.
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
    """Installs the observer on every event loop that is created from now on."""
    make = uvloop.new_event_loop

    def made() -> uvloop.Loop:
        loop = make()
        loop.call_soon(_Observer(loop, file).tick)
        return loop

    uvloop.new_event_loop = made


if __name__ == "__main__":
    observe(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
