"""Stop sequences for backends that know none: the answer ends before the first match, which is never shown."""

from collections.abc import Sequence

from gateway.events import Event, Finish, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart


class StopMatcher:
    """Filters events. Holds back only the longest end of the text that may still become a stop sequence.

    After a match `matched` is true, a Finish has been emitted, open calls have been closed and the rest is dropped.
    """

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences = [sequence for sequence in sequences if sequence]
        self._held = ""
        self._open_calls: set[int] = set()
        self.matched = False

    def feed(self, events: list[Event]) -> list[Event]:
        """The events that may be shown now."""
        shown: list[Event] = []
        for event in events:
            if self.matched:
                break
            if isinstance(event, TextDelta):
                self._text(event.text, shown)
                continue
            if isinstance(event, ToolCallStart):
                self._open_calls.add(event.index)
            elif isinstance(event, ToolCallEnd):
                self._open_calls.discard(event.index)
            if self._held and isinstance(event, Finish | ToolCallStart | ToolCallDelta | ToolCallEnd):
                shown.append(TextDelta(self._held))
                self._held = ""
            shown.append(event)
        return shown

    def _text(self, text: str, shown: list[Event]) -> None:
        text = self._held + text
        at, sequence = min(
            ((at, sequence) for sequence in self._sequences if (at := text.find(sequence)) >= 0), default=(-1, "")
        )
        if at >= 0:
            self.matched = True
            self._held = ""
            if at:
                shown.append(TextDelta(text[:at]))
            shown.extend(ToolCallEnd(index) for index in sorted(self._open_calls))
            shown.append(Finish("stop", f"stop_sequence:{sequence}"))
            return
        held = self._partial(text)
        if len(text) > held:
            shown.append(TextDelta(text[: len(text) - held]))
        self._held = text[len(text) - held :]

    def _partial(self, text: str) -> int:
        """Length of the longest end of `text` that is a proper beginning of a stop sequence."""
        longest = max((len(sequence) for sequence in self._sequences), default=1) - 1
        for length in range(min(longest, len(text)), 0, -1):
            end = text[-length:]
            if any(len(sequence) > length and sequence.startswith(end) for sequence in self._sequences):
                return length
        return 0
