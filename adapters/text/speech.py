"""The model's text in pieces in, the events of its answer out: text and calls, no more calls than were allowed."""

from collections.abc import Sequence

from gateway.errors import InvalidToolCall
from gateway.events import Event, Reason, TextDelta, ToolCallStart
from gateway.notices import Notice
from gateway.tools.prompted.parser import ToolCallParser


class Speech:
    """`forced`: text is held until a call has begun, and an answer without one is an error. Unless `parallel`, the
    answer ends where a second call begins, and `stopped` turns true."""

    def __init__(self, parser: ToolCallParser, prefill: str, forced: bool, parallel: bool) -> None:
        self._parser = parser
        self._prefill = prefill
        self._waits = forced
        self._parallel = parallel
        self._called = False
        self._held: list[Event] = []
        self.characters = 0
        self.stopped = False

    def feed(self, texts: Sequence[str], events: list[Event]) -> None:
        """Add the events of pieces that came together, each with its own. Raises BackendError for a call that cannot
        be one, behind the events of what came before it."""
        if not self._waits and not self._prefill and (passed := self._parser.pass_on(texts)) is not None:
            self.characters += len("".join(texts))
            events += passed
            return
        for text in texts:
            self._piece(text, events)
            if self.stopped:
                break

    def _piece(self, text: str, events: list[Event]) -> None:
        self.characters += len(text)
        if self._prefill:
            text, self._prefill = self._prefill + text, ""
        read = self._parser.feed(text)
        events += self._allowed(read) if self._waits or ToolCallStart in map(type, read) else read

    def close(self, reason: Reason) -> list[Event]:
        """The end of the text. Raises InvalidToolCall for an answer without the call that it had to be, and
        BackendTruncated for half a call."""
        events = self._allowed(self._parser.close(reason))
        if self._waits:
            raise InvalidToolCall("The model answered without the tool call that tool_choice asks for.")
        return events

    def _allowed(self, events: list[Event]) -> list[Event]:
        allowed: list[Event] = []
        for event in events:
            if isinstance(event, ToolCallStart):
                if self._called and not self._parallel:
                    allowed.append(_ONE_CALL)
                    self.stopped = True
                    break
                self._called = True
                self._waits = False
                allowed += self._held
                self._held = []
            if self._waits and isinstance(event, TextDelta):
                self._held.append(event)
            else:
                allowed.append(event)
        return allowed


_ONE_CALL = Notice(
    "backend",
    "dropped",
    "SECOND_CALL_DROPPED",
    "parallel_tool_calls is false, so the answer ends before its second call",
)
