"""`python -m tests.fuzz.full_size [WORD [MB ...]]`: the cases of `test_work` whose name has the word, at full size.

Prints for each size the seconds of processor time, the milliseconds for which the interpreter was held at the longest,
and the megabytes of memory at the height beyond the input. It judges nothing. Each measurement has a process of its
own. A case that takes more than `ENOUGH_S` at one size is not tried at a larger one, and one that takes `LIMIT_S` is
ended.
"""

import gc
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Sized
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from tests.fuzz.test_work import WORK

T = TypeVar("T")

MEGABYTE: Final = 1 << 20
# The first is a little less than what the server looks at outside the event loop.
SIZES_MB: Final = (0.12, 1, 4, 16)
ENOUGH_S: Final = 20
LIMIT_S: Final = 60
_TICK_S: Final = 0.001
_FORK: Final = multiprocessing.get_context("fork")


class Figures(NamedTuple):
    seconds: float
    held_s: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.seconds:7.2f} s {1000 * self.held_s:6.0f} ms {self.megabytes:5.0f} MB"


class _Held:
    """The longest processor time of a thread between two moments at which another one could run."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "_Held":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        seen = time.clock_gettime(self._clock)
        while not self._ended.wait(_TICK_S):
            now = time.clock_gettime(self._clock)
            self.longest, seen = max(self.longest, now - seen), now


def _status(key: str) -> float:
    """A figure of `/proc/self/status`, in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def _made(name: str, n: int) -> Sized:
    return WORK[name].make(n)


def _measured(name: str, given: Sized) -> Figures:
    case = WORK[name]
    case.do(case.make(1))  # what is kept of the first time
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the height
    before, began = _status("VmRSS"), time.thread_time()
    with _Held() as held:
        case.do(given)
    return Figures(time.thread_time() - began, held.longest, _status("VmHWM") - before)


def _alone(work: Callable[[], T]) -> T | None:
    """What the work gives in a process of its own, or nothing where it takes too long."""
    with _FORK.Pool(1) as pool:
        try:
            return pool.apply_async(work).get(LIMIT_S)
        except multiprocessing.TimeoutError:
            return None


def measure(name: str, size_mb: float) -> Figures | None:
    make = WORK[name].make
    each = max((len(make(4096)) - len(make(2048))) / 2048, 1)
    given = _alone(partial(_made, name, int(size_mb * MEGABYTE / each)))
    return None if given is None else _alone(partial(_measured, name, given))


def main(word: str = "", *sizes_mb: str) -> None:
    for name in (name for name in WORK if word in name):
        sys.stdout.write(f"{name:60}")
        for size_mb in [*map(float, sizes_mb)] or SIZES_MB:
            figures = measure(name, size_mb)
            sys.stdout.write(f" | {figures or 'ended'!s:>27}")
            sys.stdout.flush()
            if figures is None or figures.seconds > ENOUGH_S:
                break
        sys.stdout.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
