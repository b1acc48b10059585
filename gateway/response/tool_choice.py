"""Holds a response to the client's choice of tools: the call that `tool_choice` requires, and one call at a time.

Not every server that accepts the field obeys it: models may answer in text, or call another function. Some backends
cannot be asked to make no more than one call.
"""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import NamedTool, ToolChoice
from gateway.core.errors import InvalidToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    Reason,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice

# A response that ended so may have ended before its call.
_INCOMPLETE: Final[frozenset[Reason]] = frozenset({"length", "content_filter"})


class ForcedCallCheck:
    """Filters the events of one response. `param` is the client's field for `choice`.

    A response without the call gets a notice before its finish; where it `fails` instead, text is held back until the
    call begins or the response ends.
    """

    def __init__(self, choice: ToolChoice, param: str, *, fails: bool) -> None:
        self._name = choice.name if isinstance(choice, NamedTool) else None
        self._param = param
        self._fails = fails
        self._held: list[Event] = []
        self._made = False
        self._missed = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events that may be sent. Raises InvalidToolCall for a call of another function than the named
        one, and for a complete response without any, if such a response fails."""
        shown: list[Event] = []
        for event in events:
            if type(event) is ToolCallStart:
                self._call(event.name, shown)
            elif type(event) is PassthroughFields:
                if event.call:
                    self._call(event.call, shown)
            elif type(event) is Finish:
                self._finish(event, shown)
            if self._fails and not self._made and type(event) is TextDelta:
                self._held.append(event)
            else:
                shown.append(event)
        return shown

    def _call(self, name: str, shown: list[Event]) -> None:
        if self._name is None or name == self._name:
            self._made = True
            self._release(shown)
        elif self._fails:
            raise self._error("The model called another function than", shown)
        else:
            self._missed = True

    def _finish(self, finish: Finish, shown: list[Event]) -> None:
        if not self._made and finish.reason not in _INCOMPLETE:
            if self._fails:
                raise self._error("The model responded without the tool call that", shown)
            said = "a call of another function than" if self._missed else "no call, which"
            detail = f"the response has {said} {self._param} requires"
            shown.append(Notice("backend", "seen", "TOOL_CHOICE_IGNORED", detail, level="warning"))
        self._release(shown)

    def _release(self, shown: list[Event]) -> None:
        shown += self._held
        self._held = []

    def _error(self, sentence: str, shown: Sequence[Event]) -> InvalidToolCall:
        error = InvalidToolCall(f"{sentence} {self._param} requires.")
        error.keep(shown)
        return error


class SingleCallFilter:
    """Filters the events of one response: each call but the first is dropped, with a notice in its place. Everything
    else passes at once. `param` is the client's field that allows one call only."""

    def __init__(self, param: str) -> None:
        self._param = param
        self._first: int | None = None

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events that may be sent."""
        shown: list[Event] = []
        for event in events:
            if isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd):
                if self._first is None:
                    self._first = event.index
                if event.index != self._first:
                    if isinstance(event, ToolCallStart):
                        shown.append(self._dropped(event))
                    continue
            shown.append(event)
        return shown

    def _dropped(self, call: ToolCallStart) -> Notice:
        detail = f"a further call, of {call.name[:64]!r}, is left out: the request allows one ({self._param})"
        return Notice("backend", "dropped", "SECOND_CALL_DROPPED", detail, tool_call_id=call.id)
