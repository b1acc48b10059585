"""Feeds a recorded response to a decoder in pieces of any size and returns the events."""

import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Protocol

from gateway.core.events import Event
from gateway.core.grammar import Grammar


class Feedable(Protocol):
    """An object that accepts a backend's bytes: a Decoder, or an Exchange."""

    @property
    def done(self) -> bool: ...

    def feed(self, data: bytes) -> list[Event]: ...

    def close(self) -> list[Event]: ...


def replay(decoder: Feedable, pieces: Iterable[bytes]) -> list[Event]:
    """Returns all events of the response, as a server would receive them: nothing is fed once `done`, and `close` is
    called only when the bytes ended before. Raises BackendError, and GrammarError for events out of order."""
    grammar = Grammar()
    events: list[Event] = []
    for piece in pieces:
        if decoder.done:
            break
        events += _checked(grammar, decoder.feed(piece))
    if not decoder.done:
        events += _checked(grammar, decoder.close())
    grammar.close()
    return events


def _checked(grammar: Grammar, events: list[Event]) -> list[Event]:
    grammar.check(events)
    return events


def cut(wire: bytes, places: Iterable[int]) -> list[bytes]:
    """Cuts the wire into pieces at these offsets."""
    inside = sorted({place for place in places if 0 < place < len(wire)})
    return [wire[start:end] for start, end in pairwise([0, *inside, len(wire)])]


def cuttings(wire: bytes, seeds: int = 5) -> Iterator[list[bytes]]:
    """Yields the wire whole, byte by byte, and cut at offsets drawn from a fixed seed."""
    yield [wire]
    yield cut(wire, range(len(wire)))
    for seed in range(seeds):
        draw = random.Random(seed)
        yield cut(wire, draw.sample(range(len(wire) + 1), draw.randint(0, min(20, len(wire)))))
