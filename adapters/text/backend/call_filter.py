"""Converts the model's text into thought, text and call events, and limits the number of calls."""

from collections.abc import Sequence
from typing import Final

from adapters.text.backend.thought import Thought
from gateway.core.errors import InvalidToolCall
from gateway.core.events import Event, Reason, ReasoningDelta, TextDelta, ToolCallStart
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.response.role_marker_filter import RAW, TURN_INVENTED
from gateway.tool_calls.parsers.parser import ToolCallParser


class CallFilter:
    """Filters one response.

    `thought`: a thought may precede the text, and nothing inside it is a call. `forced`: text is held until a call has
    begun, and a response without a call is an error. Unless `parallel`, the response ends where a second call begins.
    `paths` name these demands for the client. `stopped` is the finish reason when the filter ended the response before
    the model's text ended.
    """

    def __init__(
        self,
        parser: ToolCallParser,
        prefill: str,
        forced: bool,
        parallel: bool,
        paths: FieldPaths,
        thought: Thought | None = None,
    ) -> None:
        self._parser = parser
        self._thought = thought
        self._prefill = prefill
        self._waits = forced
        self._parallel = parallel
        self._paths = paths
        self._called = False
        self._held: list[Event] = []
        self.stopped: str | None = None

    def feed(self, texts: Sequence[str], events: list[Event]) -> None:
        """Adds the events of pieces that arrived together, each with its own events. Raises BackendError for an invalid
        call, after adding the events before it."""
        if self._thought is not None:
            texts = self._without_thought(self._thought, texts, events)
        if not self._waits and not self._prefill and (passed := self._parser.pass_on(texts)) is not None:
            events += passed
            return
        for text in texts:
            self._piece(text, events)
            if self.stopped is not None:
                break

    def thinks_apart(self) -> None:
        """Records that the wire reports thoughts in a field of their own, so that the text holds no thought that the
        prompt opened."""
        if self._thought is not None and self._thought.expected:
            self._thought = None

    def _without_thought(self, thought: Thought, texts: Sequence[str], events: list[Event]) -> list[str]:
        """Adds the events of the thoughts in the pieces and returnss the text outside the thoughts."""
        spoken: list[str] = []
        for text in texts:
            thinks, says = thought.feed(text) if not thought.over else ("", text)
            self._think(thinks, events)
            spoken += [says] if says else []
        if thought.over:
            self._thought = None
        return spoken

    def _think(self, text: str, events: list[Event]) -> None:
        if text:
            events.append(ReasoningDelta(text))

    def _piece(self, text: str, events: list[Event]) -> None:
        if self._prefill:
            text, self._prefill = self._prefill + text, ""
        read = self._parser.feed(text)
        events += self._allowed(read) if self._waits or ToolCallStart in map(type, read) else read
        if self._parser.ended and self.stopped is None:
            events.append(TURN_INVENTED)
            self.stopped = RAW

    def close(self, reason: Reason, events: list[Event]) -> None:
        """Ends the text. Raises InvalidToolCall for a response without the required call, and BackendTruncated for half
        a call."""
        if self._thought is not None:
            self._close_thought(self._thought, reason, events)
        events += self._allowed(self._parser.close(reason))
        if self._waits:
            param = self._paths.param("tool_choice")
            raise InvalidToolCall(f"The model responded without the tool call that {param} requires.")

    def _close_thought(self, thought: Thought, reason: Reason, events: list[Event]) -> None:
        thinks, says = thought.close()
        self._think(thinks, events)
        if thought.inside and reason == "stop":
            events.append(_UNCLOSED)
        if says:
            self._piece(says, events)

    def _allowed(self, events: list[Event]) -> list[Event]:
        allowed: list[Event] = []
        for event in events:
            if isinstance(event, ToolCallStart):
                if self._called and not self._parallel:
                    allowed.append(self._one_call())
                    self.stopped = _SECOND
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

    def _one_call(self) -> Notice:
        param = self._paths.param("parallel_tool_calls")
        detail = f"{param} is false, so the response ends before its second call"
        return Notice("backend", "dropped", "SECOND_CALL_DROPPED", detail)


_UNCLOSED: Final = Notice(
    "backend", "seen", "THOUGHT_UNCLOSED", "the response ended inside the model's reasoning", level="warning"
)
_SECOND: Final = "one_call"
