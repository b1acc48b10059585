"""Filters invented turns out of the response of a model that continues a transcript.

A model that is given a conversation as text may continue it after its own turn: it writes the user's next message or a
tool's result. None of these happened, so the response ends before the first such turn. A label opens a turn behind a
blank line, which separates the turns of the text; a label on the next line is the model's own text.
"""

import re
from typing import Final

from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.policy import FlattenOptions
from gateway.history.transcript.styles import STYLES

RAW: Final = "turn_invented"
TURN_INVENTED: Final = Notice(
    "backend",
    "dropped",
    "TURN_INVENTED",
    "the model began a turn of another role; the response ends before it",
    level="warning",
)

# These events open no turn and end none.
_PASSING: Final = frozenset({ToolCallDelta, ReasoningDelta, UsageReport})
# A longer run of blanks is not held back, so that the held text stays small.
_BLANKS: Final = 32
# A blank line and the indentation of a label, which together must fit into the held text.
_PARTED: Final = r"\n[ \t\r]{0,16}\n[ \t]{0,3}"


def turn_stops(options: FlattenOptions) -> tuple[str, ...]:
    """Returns the texts that open another speaker's turn in a conversation rendered with these options."""
    return (*(f"\n\n{label}" for label in _labels(options)), *(f"\n{line}" for line in STYLES[options.style].openings))


def _labels(options: FlattenOptions) -> tuple[str, ...]:
    labels = options.labels
    return (f"{labels.user}:", f"{labels.system}:", f"{labels.tool_result} (", f"{labels.tool_result}:")


class RoleMarkerFilter:
    """Filters the events of one response.

    A text that opens a turn of any speaker ends the response: the text before it is kept without the blank lines
    between, open calls may still end, a Finish follows, `stopped` turns true, and the rest is dropped. Behind a call a
    label needs no blank line: the model's turn ends there. The assistant's own label at the very beginning is left out
    instead, like blanks there: the text that the model continues ends with that label. Only text that may still become
    such a line is held back.
    """

    def __init__(self, options: FlattenOptions) -> None:
        own = f"{options.labels.assistant}:"
        lines = STYLES[options.style].openings
        markers = (*_labels(options), own, *lines)
        spoken = "|".join(map(re.escape, (*_labels(options), own)))
        self._turn = re.compile("|".join([rf"{_PARTED}(?:{spoken})", *(f"\n{re.escape(line)}" for line in lines)]))
        self._turn_behind_call = re.compile(rf"(?:\s*\n)?[ \t]{{0,3}}(?:{'|'.join(map(re.escape, markers))})")
        self._own = own
        self._markers = markers
        self._longest = max(map(len, markers)) + 3
        self._held = ""
        self._begins = True
        self._behind_call = False
        self._first = True
        self._trims = True
        self._cut = False
        self._open_calls: set[int] = set()
        self.stopped = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events that belong to the response."""
        if (within := self._within_line(events)) is not None:
            return within
        if not self._cut and _PASSING.issuperset(map(type, events)):
            return events
        shown: list[Event] = []
        for event in events:
            if self.stopped:
                break
            if type(event) is TextDelta:
                if not self._cut:
                    self._text(event.text, shown)
            else:
                self._filter(event, shown)
            if self._cut and not self._open_calls:
                self.stopped = True
                shown.append(Finish("stop", RAW))
        return shown

    def _within_line(self, events: list[Event]) -> list[Event] | None:
        """Returns the pieces of one line, or None for any other events.

        No turn opens in the middle of a line; only its last blanks may stand before a turn.
        """
        if self._begins or self._first or self._trims or self._cut:
            return None
        texts: list[str] = []
        for event in events:
            if type(event) is not TextDelta:
                return None
            texts.append(event.text)
        if not texts:
            return None
        texts[0] = self._held + texts[0]
        last = texts[-1]
        certain = _without_blanks(last, len(last))
        if certain <= 0 or "\n" in "".join(texts):
            return None
        self._held, texts[-1] = last[certain:], last[:certain]
        return list(map(TextDelta, texts))

    def _filter(self, event: Event, shown: list[Event]) -> None:
        match event:
            case ToolCallStart(index):
                if self._cut:
                    return
                # Blanks between a text and a call belong to neither.
                self._held = self._held.rstrip()
                self._release(shown)
                self._open_calls.add(index)
            case ToolCallDelta(index) if self._cut and index not in self._open_calls:
                return
            case ToolCallEnd(index):
                if self._cut and index not in self._open_calls:
                    return
                self._open_calls.discard(index)
                self._begins, self._behind_call, self._first, self._trims = True, True, False, False
            case Notice() if event is TURN_INVENTED:
                # The backend itself stopped there; the remaining blank lines are not part of the response.
                self._held = self._held.rstrip()
            case Finish():
                if self._cut:
                    self._open_calls.clear()
                    return
                self._release(shown)
            case _:
                pass
        shown.append(event)

    def _text(self, text: str, shown: list[Event]) -> None:
        text, self._held = self._held + text, ""
        if self._first:
            text = self._without_own_label(text, shown)
            if self._first:
                self._held = text
                return
        found = self._turn_behind_call.match(text) if self._begins and self._behind_call else None
        found = found or self._turn.search(text)
        if found is not None:
            self._show(text[: _without_blanks(text, found.start())], shown)
            self._cut = True
            shown.append(TURN_INVENTED)
            return
        certain = self._certain(text)
        self._held = text[certain:]
        self._show(text[:certain], shown)

    def _without_own_label(self, text: str, shown: list[Event]) -> str:
        """Drops the label that the model may repeat from the end of its prompt."""
        stripped = text.lstrip()
        text = text[max(0, len(text) - len(stripped) - _BLANKS) :]
        self._first = len(stripped) < len(self._own) and self._own.startswith(stripped)
        if not stripped.startswith(self._own):
            return text
        detail = "the response began with the assistant's own label, which is removed"
        shown.append(Notice("backend", "dropped", "ANSWER_LABEL_DROPPED", detail, level="debug"))
        return stripped.removeprefix(self._own)

    def _may_become_turn(self, line: str) -> bool:
        return any(len(line) < len(marker) and marker.startswith(line) for marker in self._markers)

    def _certain(self, text: str) -> int:
        """Returns the length of the text that is certainly neither a line that opens a turn nor blank before one."""
        at = text.rfind("\n") + 1
        begins_line = at > 0 or self._begins
        may_open = begins_line and len(text) - at <= self._longest and self._may_become_turn(text[at:].lstrip(" \t"))
        return _without_blanks(text, at if may_open else len(text))

    def _show(self, text: str, shown: list[Event]) -> None:
        if self._trims:
            text = text.lstrip()
            self._trims = not text
        if text:
            self._begins = self._begins and text.isspace()
            shown.append(TextDelta(text))

    def _release(self, shown: list[Event]) -> None:
        self._show(self._held, shown)
        self._held = ""


def _without_blanks(text: str, end: int) -> int:
    """Returns where the last non-blank part of the text before `end` ends, within a short distance."""
    visible, nearest = len(text[:end].rstrip()), end - _BLANKS
    # Not `max`: this is done for every piece of text.
    return visible if visible > nearest else nearest
