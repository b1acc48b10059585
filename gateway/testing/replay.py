"""A recorded answer in, the events of a decoder that was fed with it, in pieces of any size, out."""

import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Protocol

from gateway.events import Event
from gateway.grammar import Grammar


class Feedable(Protocol):
    """What takes a backend's bytes: a Decoder, or an Exchange."""

    @property
    def done(self) -> bool: ...

    def feed(self, data: bytes) -> list[Event]: ...

    def close(self) -> list[Event]: ...


def replay(decoder: Feedable, pieces: Iterable[bytes]) -> list[Event]:
    """All events of the answer, as a server would see them: nothing is fed once `done`, and `close` is called
    only when the bytes ended before. Raises BackendError, and GrammarError for events out of order."""
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
    """The wire in pieces, cut at these places."""
    inside = sorted({place for place in places if 0 < place < len(wire)})
    return [wire[start:end] for start, end in pairwise([0, *inside, len(wire)])]


def cuttings(wire: bytes, seeds: int = 5) -> Iterator[list[bytes]]:
    """The wire whole, byte by byte, and cut at places drawn from a fixed seed."""
    yield [wire]
    yield cut(wire, range(len(wire)))
    for seed in range(seeds):
        draw = random.Random(seed)
        yield cut(wire, draw.sample(range(len(wire) + 1), draw.randint(0, min(20, len(wire)))))
