"""The work of a function, counted: the same on every machine, however busy it is.

Counted are the calls of Python's and C's functions, the bytes for which memory is asked, and the steps of
normalisation. So a loop that calls anything is seen, and so is a copy that C makes: of a text that grows, a tuple that
is joined. What is not seen is a copy that takes the place of one of its size between two calls, and a search in C
that keeps nothing, a regular expression's above all; patterns over foreign text are possessive for that reason, and
`tests/history/transcript/test_escape.py` counts what is given to them.
"""

import gc
import itertools
import sys
import tracemalloc
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, Final, Literal, NamedTuple

import pytest

from gateway.history.transcript import escape as guard


class Work(NamedTuple):
    """`steps` are calls, `bytes` for which memory was asked, and what `normalised` marks cost to sort."""

    steps: int
    bytes: int
    normalised: int


class Normaliser(ModuleType):
    """`unicodedata`, counting what it is given: a run of combining marks is sorted by insertion."""

    def __init__(self) -> None:
        super().__init__("unicodedata")
        self.steps = 0
        self.longest = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(unicodedata, name)

    def normalize(self, form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
        self._count(text)
        return unicodedata.normalize(form, text)

    def is_normalized(self, form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> bool:
        self._count(text)
        return unicodedata.is_normalized(form, text)

    def _count(self, text: str) -> None:
        self.longest = max(self.longest, len(text))
        runs = itertools.groupby(map(unicodedata.combining, text), key=bool)
        self.steps += sum(length * length if marks else length for marks, length in ((m, len([*r])) for m, r in runs))


@contextmanager
def counted_normalisation() -> Iterator[Normaliser]:
    """Counts the label guard's normalisation."""
    normaliser = Normaliser()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "unicodedata", normaliser)
        yield normaliser


# Smaller pieces of memory belong to steps, which are counted.
_PIECE: Final = 256


def count_work(work: Callable[[], object]) -> Work:
    """What the function costs. It runs once."""
    steps = asked = held = 0
    measure, reset = tracemalloc.get_traced_memory, tracemalloc.reset_peak

    def seen(_: FrameType, __: str, ___: object) -> None:
        nonlocal steps, asked, held
        steps += 1
        # What was asked for since the last look, also where it was given back at once.
        now, height = measure()
        if height - held > _PIECE:
            asked += height - held
        held = now
        reset()

    gc.disable()
    before = sys.getprofile()
    with counted_normalisation() as normaliser:
        tracemalloc.start()
        try:
            held = measure()[0]
            sys.setprofile(seen)
            work()
        finally:
            sys.setprofile(before)
            tracemalloc.stop()
            gc.enable()
    return Work(steps, asked, normaliser.steps)


_LEAST: Final = Work(300, 32_768, 1_000)


def growth(small: Work, large: Work) -> float:
    """How many times the work grew, by the figure that grew most. What is small is not taken for growth."""
    return max(after / max(before, least) for before, after, least in zip(small, large, _LEAST, strict=True))
