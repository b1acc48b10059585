"""Finds a smallest part of a list that still shows a fault (delta debugging, Zeller and Hildebrandt 2002)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(items: Sequence[T], shows: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Returns a part of the items, in order, that `shows` the fault while no single item can be left out of it.

    `shows(items)` must be true. The same items give the same part. The number of calls is at most quadratic in the
    number of items, and close to linear where few matter.
    """
    kept = list(items)
    if kept and shows(()):
        return ()
    pieces = 2
    while len(kept) >= 2:
        size = -(-len(kept) // pieces)
        starts = range(0, len(kept), size)
        smaller = next((rest for at in starts if shows(rest := kept[:at] + kept[at + size :])), None)
        if smaller is not None:
            kept = smaller
            pieces = max(pieces - 1, 2)
        elif size == 1:
            break
        else:
            pieces = min(2 * pieces, len(kept))
    return tuple(kept)
