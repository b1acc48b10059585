"""Cuts a long answer into pages of bounded size."""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from gateway.core.errors import InvalidRequest

# So many bytes of JSON one answer has at most, and a little more where one item alone is larger.
MOST: Final = 2**20
T = TypeVar("T")


class Span(msgspec.Struct, frozen=True):
    """Positions in a list, half open; None: its end."""

    start: int = 0
    stop: int | None = None

    def __post_init__(self) -> None:
        """Raises InvalidRequest for positions that do not follow each other."""
        if self.stop is not None and self.stop < self.start:
            raise InvalidRequest(f"to must not be below from; they are {self.start} and {self.stop}.", param="to")


def paged(items: Sequence[T], span: Span, most: int = MOST) -> tuple[int, int, Sequence[T]]:
    """Returns the items of the positions from the first on that fit, with these positions."""
    start = min(span.start, len(items))
    stop = len(items) if span.stop is None else min(span.stop, len(items))
    size = 0
    for at in range(start, stop):
        size += len(msgspec.json.encode(items[at]))
        if size > most and at > start:
            return start, at, items[start:at]
    return start, stop, items[start:stop]
