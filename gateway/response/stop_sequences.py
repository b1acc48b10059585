"""Applies stop sequences for backends without them: the response ends before the first match, which is not sent."""

import re
from collections.abc import Sequence

from gateway.core.events import (
    STOPPED_BY,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)


class StopMatcher:
    """Filters the events of one response.

    The text sent to the client is all of the response's text up to the beginning of the first match, however the deltas
    were cut (of two matches that begin together the shorter one counts). Only the end of the text that may still become
    a match is held back. Everything else passes at once. After a match open calls may still end and new calls are
    dropped; then a Finish follows, `matched` turns true, and the rest is dropped.
    """

    def __init__(self, sequences: Sequence[str]) -> None:
        self._searches = [_Search(sequence) for sequence in sequences if sequence]
        # Without a sequence the matcher finds nothing.
        self._first = re.compile("|".join(re.escape(search.sequence[0]) for search in self._searches) or r"(?!)")
        self._held = ""
        self._open_calls: set[int] = set()
        self._stopped_by: str | None = None
        self.matched = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events that may be sent now."""
        shown: list[Event] = []
        for event in events:
            if self.matched:
                break
            self._filter(event, shown)
            if self._stopped_by is not None and not self._open_calls:
                self.matched = True
                shown.append(Finish("stop", f"{STOPPED_BY}{self._stopped_by}", self._stopped_by))
        return shown

    def _filter(self, event: Event, shown: list[Event]) -> None:
        if isinstance(event, TextDelta):
            self._text(event.text, shown)
            return
        if isinstance(event, Finish):
            self._release(shown, ended=True)
            if self._stopped_by is not None:
                self._open_calls.clear()
                return
        if self._stopped_by is not None and self._comes_too_late(event):
            return
        if isinstance(event, ToolCallStart):
            self._open_calls.add(event.index)
        elif isinstance(event, ToolCallEnd):
            self._open_calls.discard(event.index)
        shown.append(event)

    def _comes_too_late(self, event: Event) -> bool:
        """Returns whether the text ended before the event. An open call may still end: half a call is none."""
        if isinstance(event, ToolCallDelta | ToolCallEnd):
            return event.index not in self._open_calls
        return isinstance(event, ReasoningDelta | ReasoningEnd | ToolCallStart)

    def _text(self, text: str, shown: list[Event]) -> None:
        if self._stopped_by is not None:
            return
        if not self._held and not self._first.search(text):
            shown.append(TextDelta(text))
            return
        for search in self._searches:
            search.feed(text)
        self._held += text
        self._release(shown, ended=False)

    def _release(self, shown: list[Event], ended: bool) -> None:
        """Emits the certain text: up to the first match, or to the first position where one may still begin."""
        matches = [
            (search.found, len(search.sequence), search.sequence) for search in self._searches if search.found >= 0
        ]
        end = len(self._held)
        match = min(matches, default=(end, 0, ""))
        pending = end if ended else min((search.pending for search in self._searches if search.found < 0), default=end)
        certain = min(match[0], pending)
        if certain > 0:
            shown.append(TextDelta(self._held[:certain]))
            self._held = self._held[certain:]
            for search in self._searches:
                search.drop(certain)
        if matches and match[0] <= pending:
            self._held = ""
            self._stopped_by = match[2]


class _Search:
    """Searches one sequence in a text that arrives in pieces, each character read once (Knuth, Morris, Pratt).

    `found` is where the first match begins, or -1. `pending` is the start of the longest suffix of the text that is a
    prefix of the sequence (the end of the text when there is none). Both count from the end of the dropped text.
    """

    def __init__(self, sequence: str) -> None:
        self.sequence = sequence
        self.found = -1
        self._borders = _borders(sequence)
        self._length = 0
        self._seen = 0

    @property
    def pending(self) -> int:
        return self._seen - self._length

    def feed(self, text: str) -> None:
        if self.found >= 0:
            return
        sequence, borders, length = self.sequence, self._borders, self._length
        at = 0
        while at < len(text):
            if not length:
                at = text.find(sequence[0], at)
                if at < 0:
                    break
            while length and text[at] != sequence[length]:
                length = borders[length - 1]
            if text[at] == sequence[length]:
                length += 1
            at += 1
            if length == len(sequence):
                self.found = self._seen + at - length
                return
        self._length = length
        self._seen += len(text)

    def drop(self, count: int) -> None:
        """Drops the first `count` characters, which are no part of a possible match."""
        self._seen -= count
        if self.found >= 0:
            self.found -= count


def _borders(sequence: str) -> list[int]:
    """Returns, for every prefix of the sequence, the length of its longest proper suffix that is also a prefix."""
    borders = [0] * len(sequence)
    length = 0
    for at in range(1, len(sequence)):
        while length and sequence[at] != sequence[length]:
            length = borders[length - 1]
        if sequence[at] == sequence[length]:
            length += 1
        borders[at] = length
    return borders
