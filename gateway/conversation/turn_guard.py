"""The answer of a model that continues a transcript in, the same without the turns that it invented out.

A model that is given a conversation as text may go on with it after its own turn: it writes what the user says next,
or what a tool would answer. Nothing of that happened, so the answer ends before the first such line.
"""

import re
from typing import Final

from gateway.events import (
    Event,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.notices import Notice
from gateway.policy import FlattenOptions

RAW: Final = "turn_invented"
TURN_INVENTED: Final = Notice(
    "backend",
    "dropped",
    "TURN_INVENTED",
    "the model went on with a turn that is not its own; the answer ends before it",
    level="warning",
)

# What opens no turn and ends none.
_PASSING: Final = frozenset({ToolCallDelta, ReasoningDelta, UsageReport})
# More blanks than these are not held back, so that what is held stays small.
_BLANKS: Final = 32
_MARKERS: Final = {"labels": (), "json": ('{"role":',), "fenced": ("<<T-",)}


def turn_markers(options: FlattenOptions) -> tuple[str, ...]:
    """How a line begins that opens a turn of somebody else's, in a conversation flattened with these options."""
    labels = options.labels
    spoken = tuple(f"{label}:" for label in (labels.user, labels.system))
    return (*spoken, f"{labels.tool_result} (", f"{labels.tool_result}:", *_MARKERS[options.style])


class TurnGuard:
    """Filters the events of one response.

    A line that opens a turn, anybody's, ends the answer: what stood before it is kept without the blank lines
    between, calls that are open may still end, then comes a Finish, `stopped` turns true, and the rest is dropped.
    The assistant's own label at the very beginning is left out instead, like blanks there: the text that the model
    continues ends with that label. Held back is only what may still become such a line.
    """

    def __init__(self, options: FlattenOptions) -> None:
        own = f"{options.labels.assistant}:"
        markers = (*turn_markers(options), own)
        written = "|".join(re.escape(marker) for marker in markers)
        self._turn = re.compile(rf"^[ \t]{{0,3}}(?:{written})", re.MULTILINE)
        self._own = own
        self._markers = markers
        self._longest = max(map(len, markers)) + 3
        self._held = ""
        self._line_start = True
        self._first = True
        self._trims = True
        self._cut = False
        self._open_calls: set[int] = set()
        self.stopped = False

    def feed(self, events: list[Event]) -> list[Event]:
        """The events that belong to the answer."""
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
                self._take(event, shown)
            if self._cut and not self._open_calls:
                self.stopped = True
                shown.append(Finish("stop", RAW))
        return shown

    def _within_line(self, events: list[Event]) -> list[Event] | None:
        """The pieces of one line: no turn opens in the middle of it, only its last blanks may stand before one. None
        for events that are more than that."""
        if self._line_start or self._first or self._trims or self._cut:
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
        certain = max(len(last.rstrip()), len(last) - _BLANKS)
        if certain <= 0 or "\n" in "".join(texts):
            return None
        self._held, texts[-1] = last[certain:], last[:certain]
        return list(map(TextDelta, texts))

    def _take(self, event: Event, shown: list[Event]) -> None:
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
                self._line_start, self._first, self._trims = True, False, False
            case Notice() if event is TURN_INVENTED:
                # The backend stopped there itself; what it left of the blank lines before is not the answer's.
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
        if self._trims:
            text = text.lstrip()
            self._trims = not text
        if self._first:
            text = self._without_own_label(text, shown)
        found = self._turn.search(text, 0 if self._line_start else 1)
        if found is not None:
            self._show(text[: _without_blanks(text, found.start())], shown)
            self._cut = True
            shown.append(TURN_INVENTED)
            return
        certain = self._certain(text)
        self._held = text[certain:]
        self._show(text[:certain], shown)

    def _without_own_label(self, text: str, shown: list[Event]) -> str:
        """The model may repeat the word that it was given to speak."""
        self._first = self._may_become_turn(text)
        if not text.startswith(self._own):
            return text
        self._trims = True
        detail = "the answer began with the assistant's own label, which is left out"
        shown.append(Notice("backend", "dropped", "ANSWER_LABEL_DROPPED", detail, level="debug"))
        text = text.removeprefix(self._own).lstrip()
        self._trims = not text
        return text

    def _may_become_turn(self, line: str) -> bool:
        return any(len(line) < len(marker) and marker.startswith(line) for marker in self._markers)

    def _certain(self, text: str) -> int:
        """How much of the text is certainly neither part of a line that opens a turn nor blank before one."""
        at = text.rfind("\n") + 1
        begins_line = at > 0 or self._line_start
        may_open = begins_line and len(text) - at <= self._longest and self._may_become_turn(text[at:].lstrip(" \t"))
        return _without_blanks(text, at if may_open else len(text))

    def _show(self, text: str, shown: list[Event]) -> None:
        if text:
            self._line_start = text.endswith("\n")
            shown.append(TextDelta(text))

    def _release(self, shown: list[Event]) -> None:
        self._show(self._held, shown)
        self._held = ""


def _without_blanks(text: str, end: int) -> int:
    """Where the text up to an end stops being blank, going back a little."""
    return max(len(text[:end].rstrip()), end - _BLANKS)
