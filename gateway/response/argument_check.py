"""Checks that the arguments of each call are one JSON value, which clients execute, complete or guess where it is none.

Clients complete cut arguments and run the call: pi and cline do, and Anthropic's SDK reads `{"path":"a.py","text":"d`
as `{"path":"a.py"}`. So a response with such a call fails, unless it ended early and says so (`length`).
"""

from collections.abc import Sequence
from typing import Final

from gateway.core.call_arguments import is_json, read_object
from gateway.core.errors import InvalidToolCall
from gateway.core.events import Event, Finish, Reason, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.notices import Action, Level, Notice, NoticeRule
from gateway.framing.json_text import FirstValue

# A response that ends so is incomplete, and its client does not execute what was cut off.
_INCOMPLETE: Final[frozenset[Reason]] = frozenset({"length", "content_filter"})
# The other events are passed on as they are.
_MARKS: Final = frozenset({ToolCallStart, ToolCallEnd, Finish})
_NO_NAMES: Final[frozenset[str]] = frozenset()
_AS_TEXT: Final = (
    "the arguments of a call are not a JSON object; the client gets them as text inside one, unless they were streamed"
)
_BROKEN: Final = "the arguments of a call are not JSON"
_PASSED: Final = "the arguments of a call are not JSON; the client gets them as they are, because repair is off"
_EXTENDED: Final = "something follows the JSON value in the arguments of a call"


class ArgumentCheck:
    """Looks at the events of one response. The client reads the arguments of these functions, or of all, as an object:
    the change of any other value into one is the dialect's, whose form of a call requires it. `passes_text`: a client
    that reads arguments as text gets them as the backend wrote them, and is told. Calls of `hidden` functions do not
    reach the client, so that nothing is demanded of them.

    `open` are the arguments of the calls that have not ended. While there are none, only the start of a call and the
    finish matter.
    """

    def __init__(
        self, objects: bool | frozenset[str], *, passes_text: bool = False, hidden: frozenset[str] = _NO_NAMES
    ) -> None:
        self.open: dict[int, _OpenCall] = {}
        self._objects = objects
        self._passes_text = passes_text
        self._hidden = hidden
        # Calls with broken arguments and their ends. Only the finish tells whether the backend cut them off knowingly.
        self._held: list[tuple[_OpenCall, ToolCallEnd]] = []

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events without what follows the first value of a call's arguments, and with a notice behind the
        end of each call that is not as it should be. Raises InvalidToolCall at the finish of a response with a call
        whose arguments are no JSON value."""
        seen: list[Event] | None = None
        for position, event in enumerate(events):
            # Nearly every event is a further piece, in which no value ends, or fields beside one.
            if type(event) is ToolCallDelta and event.index in self.open:
                call, piece = self.open[event.index], event.arguments
                matters = call.value.over or "}" in piece or "]" in piece
                if not matters:
                    call.pieces.append(piece)
            else:
                matters = type(event) in _MARKS
            if matters:
                seen = events[:position] if seen is None else seen
                self._check(event, seen)
            elif seen is not None:
                seen.append(event)
        return events if seen is None else seen

    def _check(self, event: Event, seen: list[Event]) -> None:
        """Adds the event, as the client gets it, to those that were seen."""
        if type(event) is ToolCallDelta and (call := self.open.get(event.index)):
            seen += call.add(event)
        elif type(event) is ToolCallEnd and (call := self.open.pop(event.index, None)):
            self._end(call, event, seen)
        elif type(event) is Finish and self._held:
            self._release(event.reason, seen)
            seen.append(event)
        else:
            if type(event) is ToolCallStart and self._is_checked(event):
                self.open[event.index] = self._opened(event)
            seen.append(event)

    def _is_checked(self, start: ToolCallStart) -> bool:
        return start.extra.get("type") != "custom" and start.name not in self._hidden

    def _opened(self, start: ToolCallStart) -> "_OpenCall":
        as_object = self._objects if isinstance(self._objects, bool) else start.name in self._objects
        return _OpenCall(start.id, as_object, self._passes_text and not as_object)

    def _end(self, call: "_OpenCall", end: ToolCallEnd, seen: list[Event]) -> None:
        text = "".join(call.pieces)
        if text.strip() and not is_json(text) and not call.passes:
            self._held.append((call, end))
            return
        seen.append(end)
        seen += call.notices(text)

    def _release(self, reason: Reason, seen: list[Event]) -> None:
        """Ends the held calls of a response that was cut off, as far as they got. Raises InvalidToolCall for any other
        response."""
        if reason not in _INCOMPLETE:
            notices = [_notice("failed", "ARGUMENTS_BROKEN", _BROKEN, call.id) for call, _ in self._held]
            broken = InvalidToolCall("The backend sent a tool call whose arguments are not JSON.", notices=notices)
            broken.keep(seen)
            broken.opens = True
            raise broken
        for call, end in self._held:
            seen.append(end)
            seen += call.notices("".join(call.pieces))
        self._held = []


class _OpenCall:
    """The arguments of a call so far. `as_object`: the client reads them as an object; `passes`: it gets them as they
    are."""

    def __init__(self, call_id: str, as_object: bool, passes: bool) -> None:
        self.id = call_id
        self.passes = passes
        self.pieces: list[str] = []
        self.value = FirstValue()
        self._as_object = as_object
        self._scanned = 0
        self._extended = False

    def add(self, delta: ToolCallDelta) -> Sequence[ToolCallDelta]:
        """Returns the delta, or what the client gets of it."""
        piece = delta.arguments
        # No value ends in the pieces that were not looked at.
        before = "".join(self.pieces[self._scanned :])
        end = 0 if self.value.over else self.value.feed(before + piece) - len(before)
        self._scanned = len(self.pieces) + 1
        if end < len(piece) and piece[end:].strip():
            self._extended = True
            if not self.passes:
                piece = piece[:end]
                delta = ToolCallDelta(delta.index, piece)
        self.pieces.append(piece)
        return (delta,) if piece else ()

    def notices(self, text: str) -> list[Notice]:
        """Returns the notices about the complete arguments, which are this text."""
        said = []
        if self._extended and not self.passes:
            said.append(_notice("dropped", "ARGUMENTS_EXTENDED", _EXTENDED, self.id))
        if self.passes and text.strip() and not is_json(text):
            said.append(_notice("seen", "ARGUMENTS_BROKEN", _PASSED, self.id))
        elif self._as_object and read_object(text) is None:
            said.append(_notice("changed", "ARGUMENTS_AS_TEXT", _AS_TEXT, self.id))
        return said


def _notice(action: Action, rule: NoticeRule, detail: str, call_id: str) -> Notice:
    level: Level = "error" if action == "failed" else "warning"
    return Notice("backend", action, rule, detail, tool_call_id=call_id, level=level)
