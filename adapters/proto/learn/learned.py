"""Defines what was learned of one place: a template, how much speaks for it, and what is left to a person."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from gateway.core.conversation import Json

# open: a recorded value that the proposal does not produce or read; chosen: one of several that fit every exchange;
# assumed: written by the names of the schema, because no exchange shows it; unread: a value that no rule reads.
DoubtKind: TypeAlias = Literal["open", "chosen", "assumed", "unread"]


class Doubt(msgspec.Struct, frozen=True):
    """Something that the exchanges do not decide. `place` is that in the entry, or the path of a field in a response;
    `alternatives` fit the exchanges as well."""

    kind: DoubtKind
    place: str
    reason: str
    alternatives: tuple[str, ...] = ()

    def text(self) -> str:
        """Returns one line."""
        others = f" ({', '.join(self.alternatives)})" if self.alternatives else ""
        return f"{self.kind}: {self.place}: {self.reason}{others}"


class Learned(msgspec.Struct, frozen=True):
    """The template of one place, or None where nothing is to be written. `evidence` counts the names in it that the
    exchanges show."""

    template: Json = None
    doubts: tuple[Doubt, ...] = ()
    evidence: int = 0

    @property
    def open(self) -> int:
        """How many recorded values it does not produce."""
        return sum(doubt.kind == "open" for doubt in self.doubts)

    def with_doubts(self, *doubts: Doubt) -> "Learned":
        """Returns the same with more doubts."""
        return msgspec.structs.replace(self, doubts=(*self.doubts, *doubts))


NOTHING = Learned()


def unexplained(place: str, reason: str) -> Learned:
    """Returns what is learned of a place whose recorded values nothing produces."""
    return Learned(doubts=(Doubt("open", place, reason),))


def merged_order(rows: Iterable[Sequence[str]]) -> list[str] | None:
    """Returns the names of all rows in one order, that of every row; None: the rows contradict each other."""
    order: list[str] = []
    for row in rows:
        for position, name in enumerate(row):
            if name not in order:
                following = next((later for later in row[position:] if later in order), None)
                order.insert(len(order) if following is None else order.index(following), name)
        places = [order.index(name) for name in row]
        if places != sorted(places):
            return None
    return order


def best(found: Iterable[Learned]) -> Learned | None:
    """Returns the one that leaves the least open; of several, the one with the most evidence, or the first."""
    return min(found, key=lambda one: (one.open, -one.evidence), default=None)
