"""Refuses the calls of functions that the client's messages have removed, and that the model knows from before, in the
answer of a backend that speaks the client's own API. For any other, `gateway.exchange.hidden_rounds` answers them.

A removal is a hint to the model, which may call the function all the same (Anthropic's SDK says so of its own API).
A client may run whatever call it gets, so that the call never reaches it.
"""

from collections.abc import Mapping
from typing import Final

from gateway.core.errors import InvalidToolCall
from gateway.core.events import Event, Finish, PassthroughFields, Reason, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice

# A response that ended so may have ended before its other calls.
_INCOMPLETE: Final[frozenset[Reason]] = frozenset({"length", "content_filter"})


class RemovedToolFilter:
    """Filters the events of one response: each call of a function in `removed`, which has the index of the message that
    removed it, is dropped with a notice in its place.

    A response whose calls are all dropped fails: without them it would be a success that asks for nothing.
    """

    def __init__(self, removed: Mapping[str, int], paths: FieldPaths) -> None:
        self._removed = removed
        self._paths = paths
        self._dropped: set[int] = set()
        self._refused: str | None = None
        self._called = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events that may be sent. Raises InvalidToolCall at the finish of a complete response whose only
        calls were of removed functions."""
        shown: list[Event] = []
        for event in events:
            if type(event) is ToolCallStart:
                if event.name in self._removed:
                    self._dropped.add(event.index)
                    self._refused = event.name
                    shown.append(self._notice(event.name, event.id))
                    continue
                self._dropped.discard(event.index)
                self._called = True
            elif isinstance(event, ToolCallDelta | ToolCallEnd):
                if event.index in self._dropped:
                    continue
            elif type(event) is PassthroughFields and event.call:
                if event.call in self._removed:
                    self._refused = event.call
                    shown.append(self._notice(event.call, None))
                    continue
                self._called = True
            elif type(event) is Finish:
                self._finish(event, shown)
            shown.append(event)
        return shown

    def _finish(self, finish: Finish, shown: list[Event]) -> None:
        if self._refused is None or self._called or finish.reason in _INCOMPLETE:
            return
        error = InvalidToolCall(removed_words(self._refused, self._removed[self._refused], self._paths))
        error.keep(shown)
        raise error

    def _notice(self, name: str, call_id: str | None) -> Notice:
        return removed_notice(name, self._removed[name], self._paths, call_id)


def removed_words(name: str, index: int, paths: FieldPaths) -> str:
    """Returns the message of an error for a call of a function that the message with this index removes."""
    return f"The model called the tool {name[:64]!r}, which {paths.turn.format(turn=index)} removes."


def removed_notice(name: str, index: int, paths: FieldPaths, call_id: str | None) -> Notice:
    """Returns the notice of a call of a function that the message with this index removes."""
    place = paths.turn.format(turn=index)
    detail = f"a call of the tool {name[:64]!r}, which {place} removes, does not reach the client"
    return Notice("backend", "dropped", "REMOVED_TOOL_CALLED", detail, tool_call_id=call_id, level="warning")
