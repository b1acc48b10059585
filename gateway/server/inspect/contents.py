"""Keeps the contents of ended requests in one block of memory, the oldest of which give way to new ones.

A block of its own, because what stays in the memory that requests use takes turns with what they are made of: each
request would then be made in memory that no cache of the processor holds any more (bench.inspector).
"""

import mmap
import sys
from collections.abc import Callable
from functools import partial

import msgspec

from gateway.inspector.asked import Asked
from gateway.server.inspect.capture import Capture, Route
from gateway.server.inspect.known_requests import ContentsState


class _Span(msgspec.Struct, frozen=True):
    """Where the contents of a request begin, and how many bytes they take; what else is known of them."""

    start: int
    size: int
    conversation: str
    asked: Asked
    route: Route | None

    @property
    def end(self) -> int:
        return self.start + self.size


class ContentsStore:
    """The contents of at most so many requests, by the time at which each began, in at most so many bytes, which the
    system gives as they are used."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._block: mmap.mmap | None = None
        # In the order in which they were added, which is that of the block, from the next place on and around.
        self._spans: dict[float, _Span] = {}
        self._next = 0

    def add(self, started: float, capture: Capture) -> None:
        """Stores the contents of a request, unless they are larger than the block."""
        packed = capture.packed()
        size = len(packed)
        if size > self._most_bytes:
            return
        if self._block is None:
            self._block = _block(self._most_bytes)
        if self._next + size > self._most_bytes:
            self._make_room(self._most_bytes)
            self._next = 0
        self._make_room(self._next + size)
        if len(self._spans) == self._most:
            del self._spans[next(iter(self._spans))]
        self._block[self._next : self._next + size] = packed
        self._spans[started] = _Span(self._next, size, capture.conversation, capture.asked or Asked(), capture.route)
        self._next += size

    def _make_room(self, end: int) -> None:
        """Drops what lies between the next place and this one."""
        while self._spans:
            started, oldest = next(iter(self._spans.items()))
            if oldest.start >= end or oldest.end <= self._next:
                break
            del self._spans[started]

    def reader(self, started: float) -> Callable[[], Capture] | None:
        """Returns a reader of the contents of a request, for any thread; None: they are not here."""
        span = self._spans.get(started)
        if span is None or self._block is None:
            return None
        return partial(Capture.unpacked, self._block[span.start : span.end], span.route)

    def state_of(self, started: float) -> ContentsState | None:
        """Returns the state of the contents of a request without reading them; None: they are not here."""
        span = self._spans.get(started)
        return None if span is None else ContentsState("kept", span.size, span.conversation, span.asked)

    def of_conversation(self, name: str) -> list[float]:
        """Returns the times at which the requests of a conversation began."""
        return [started for started, span in self._spans.items() if span.conversation == name]

    def clear(self) -> None:
        """Removes all contents, and frees the memory."""
        self._block = None
        self._spans.clear()
        self._next = 0


def _block(size: int) -> mmap.mmap:
    # The system gives its pages as they are used. A process that is forked must not write into them.
    return mmap.mmap(-1, size) if sys.platform == "win32" else mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
