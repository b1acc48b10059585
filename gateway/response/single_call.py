"""Keeps a response to one call, for backends that cannot be asked to make no more."""

from gateway.core.events import Event, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.notices import Notice


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
