"""Reports calls whose arguments are no JSON object to a client that reads them as one."""

from typing import Final, Literal

from gateway.core.events import Event, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.notices import Notice
from gateway.history.call_arguments import read_object

_DETAIL: Final = (
    "the arguments of a call are not a JSON object; the client gets them as text inside one, unless they were streamed"
)


class ObjectArgumentsCheck:
    """Looks at the events of one response: at the calls of these functions, or at all. The change itself is the
    dialect's, whose form of a call requires it.

    `open` are the arguments of the calls that have not ended, in pieces. While there are none, only the start of a call
    matters.
    """

    def __init__(self, functions: frozenset[str] | Literal[True]) -> None:
        self.open: dict[int, _OpenCall] = {}
        self._functions = functions

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events, with a notice behind the end of each call whose arguments are no object."""
        seen: list[Event] = []
        for event in events:
            seen.append(event)
            if type(event) is ToolCallStart:
                if self._functions is True or event.name in self._functions:
                    self.open[event.index] = _OpenCall(event.id)
            elif type(event) is ToolCallDelta:
                if call := self.open.get(event.index):
                    call.pieces.append(event.arguments)
            elif type(event) is ToolCallEnd and (call := self.open.pop(event.index, None)):
                seen += call.notices()
        return seen


class _OpenCall:
    """The arguments of a call so far."""

    def __init__(self, call_id: str) -> None:
        self.pieces: list[str] = []
        self._id = call_id

    def notices(self) -> list[Notice]:
        """Returns what is to be said of the complete arguments."""
        if read_object("".join(self.pieces)) is not None:
            return []
        return [Notice("backend", "changed", "ARGUMENTS_AS_TEXT", _DETAIL, tool_call_id=self._id, level="warning")]
