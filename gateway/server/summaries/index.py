"""Holds what all workers know of one conversation's summaries: the boundaries that were seen, and what became of each.

The index stands under the root of a conversation (`gateway.memory.history_digest.root`). Forks share a root,
and other conversations may begin alike: so an entry counts only for a request that has its digest. An index is a
value; it is changed by compare-and-set, and a lost one costs another sighting.
"""

from collections.abc import Container
from typing import Final, Literal, TypeAlias

import msgspec

# Grows with every change of the values below: it is a part of the key under which they are stored.
FORM: Final = 1
# Boundaries of one root. The one used least recently goes first.
MOST_ENTRIES: Final = 32
# After each failure of a boundary, so long passes before the next attempt; after the last one it is given up.
BACKOFF_S: Final = (60.0, 300.0, 1800.0)
HOUR_S: Final = 3600.0
# Attempts of an hour that may fail for one root, on all workers together.
MOST_AN_HOUR: Final = 6

# `candidate`: seen, not summarised; `summary`: there is a record; `abandoned`: every attempt has failed.
Outcome: TypeAlias = Literal["candidate", "summary", "abandoned"]
# Why no attempt is made for a candidate now.
Refusal: TypeAlias = Literal["unseen", "backoff", "hourly"]


class IndexEntry(msgspec.Struct, frozen=True):
    """One boundary. `sightings` counts the requests that carried it, `failures` its failed attempts; before
    `not_before` (seconds since 1970) no other one is made. `generation` is that of its summary."""

    turns: int
    digest: bytes
    outcome: Outcome = "candidate"
    sightings: int = 1
    failures: int = 0
    not_before: float = 0
    generation: int = 0


class SummaryIndex(msgspec.Struct, frozen=True):
    """The boundaries of one root, the one used last at the end. `attempts` are the times of those in the last hour that
    have failed or are not over yet, and `futile` says that the log has reported once that no summary would help."""

    entries: tuple[IndexEntry, ...] = ()
    attempts: tuple[float, ...] = ()
    futile: bool = False

    def encode(self) -> bytes:
        """Returns the index as MessagePack."""
        return msgspec.msgpack.encode(self)

    def find(self, digest: bytes) -> IndexEntry | None:
        """Returns the entry of a boundary."""
        return next((entry for entry in self.entries if entry.digest == digest), None)

    def with_entry(self, entry: IndexEntry) -> "SummaryIndex":
        """Returns the index with this entry, as the one used last, instead of its former one."""
        others = [one for one in self.entries if one.digest != entry.digest]
        return msgspec.structs.replace(self, entries=(*others, entry)[-MOST_ENTRIES:])

    def with_attempt(self, now: float) -> "SummaryIndex":
        """Returns the index with an attempt that begins now."""
        return msgspec.structs.replace(self, attempts=(*self._recent(now), now))

    def without_attempt(self, time: float) -> "SummaryIndex":
        """Returns the index after the attempt that began at this time has succeeded."""
        attempts = [*self.attempts]
        if time in attempts:
            attempts.remove(time)
        return msgspec.structs.replace(self, attempts=tuple(attempts))

    def with_futile(self) -> "SummaryIndex":
        """Returns the index of a conversation of which the log has reported that no summary would help."""
        return msgspec.structs.replace(self, futile=True)

    def refusal(self, entry: IndexEntry, sightings: int, now: float) -> Refusal | None:
        """Returns why no attempt may be made for a candidate; None: it may be made."""
        if entry.sightings < sightings:
            return "unseen"
        # A clock that was set back must not end all attempts.
        if now < entry.not_before <= now + BACKOFF_S[-1]:
            return "backoff"
        return "hourly" if len(self._recent(now)) >= MOST_AN_HOUR else None

    def _recent(self, now: float) -> list[float]:
        return [time for time in self.attempts if now - HOUR_S < time <= now]


def seen(entry: IndexEntry) -> IndexEntry:
    """Returns the entry after one more request that carried its boundary."""
    return msgspec.structs.replace(entry, sightings=entry.sightings + 1)


def failed(entry: IndexEntry, now: float) -> IndexEntry:
    """Returns the entry after one more failed attempt: later, or never again."""
    failures = entry.failures + 1
    if failures > len(BACKOFF_S):
        return msgspec.structs.replace(entry, failures=failures, outcome="abandoned")
    return msgspec.structs.replace(entry, failures=failures, not_before=now + BACKOFF_S[failures - 1])


def newest(index: SummaryIndex, outcome: Outcome, digests: Container[bytes]) -> IndexEntry | None:
    """Returns the entry with this outcome that has the most turns, among those with one of these digests."""
    found = [entry for entry in index.entries if entry.outcome == outcome and entry.digest in digests]
    return max(found, key=lambda entry: entry.turns, default=None)


def decode_index(data: bytes) -> SummaryIndex:
    """Returns the index in these bytes; an empty one for other bytes."""
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError:
        return SummaryIndex()


_DECODER: Final = msgspec.msgpack.Decoder(SummaryIndex)
