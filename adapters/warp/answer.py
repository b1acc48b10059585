"""Entries of the log -> text, reasoning and calls for the client, each as early as it is certain enough."""

from typing import Final

from adapters.warp.calls import CallWriter
from adapters.warp.carrier import Carrier
from adapters.warp.entry import CALL, OUTPUT, REASONING, Entry
from adapters.warp.output import Output
from gateway.events import Extension, ReasoningDelta, TextDelta

# What every answer has beside its content: the echo of the question and the backend's own bookkeeping.
BOOKKEEPING: Final = frozenset({"user_query", "tool_call_result", "server_event", "system_query"})


class Answer:
    """Text goes out at once unless it is held; a call waits for a commit or the finish, because a client acts on it.

    `has_output` says that the client was given something to read or to do.
    """

    def __init__(self, calls: CallWriter, carrier: Carrier, output: Output, reasoning: bool) -> None:
        self.has_output = False
        self.calls = calls
        self._carrier: Carrier | None = carrier
        self._reasoning = reasoning
        self._output = output
        self._pending: dict[Entry, None] = {}

    def settle(self, entry: Entry, held: bool) -> None:
        """An entry is new or has changed."""
        if entry.conflicts and not held:
            self._output.note("seen", "SHOWN_TEXT_REPLACED", "the backend replaced text that had been sent already")
            entry.settle()
        if len(entry.pieces) > entry.seen or entry.conflicts:
            if held:
                self._pending[entry] = None
            else:
                self._show(entry)
        elif entry.kind == CALL:
            if not entry.called:
                self._pending[entry] = None
        elif entry.kind not in (OUTPUT, REASONING):
            self._note(entry)

    def release(self) -> None:
        """What waits is certain now. Raises InvalidToolCall."""
        pending, self._pending = self._pending, {}
        for entry in pending:
            self.settle(entry, held=False)
            if entry.kind == CALL and not entry.called:
                entry.called = True
                written = self.calls.written
                self.calls.write(entry.message)
                self.has_output |= self.calls.written > written
        self._pending.clear()

    def forget(self, entries: list[Entry]) -> None:
        """These were never said."""
        for entry in entries:
            self._pending.pop(entry, None)

    def _show(self, entry: Entry) -> None:
        text = entry.show()
        if entry.kind == OUTPUT:
            self.has_output = True
            if self._carrier is not None:
                self._carry(entry, self._carrier)
            self._output.events.append(TextDelta(text))
        elif self._reasoning:
            self._output.events.append(ReasoningDelta(text))
        else:
            self._output.note_once("dropped", "REASONING_DROPPED", "reasoning was sent though it was not asked for")

    def _carry(self, entry: Entry, carrier: Carrier) -> None:
        """Once, with the first text: a client that joins what chunks carry would join it with itself."""
        self._carrier = None
        extra = carrier.extra(entry.message)
        if extra:
            self._output.events.append(Extension("delta", extra))

    def _note(self, entry: Entry) -> None:
        if entry.kind == "model_used":
            if entry.message.model_used.is_fallback:
                name = entry.message.model_used.model_id[:80]
                detail = f"the answer is by {name!r}, in place of the model that was asked for"
                self._output.note_once("seen", "MODEL_FALLBACK", detail)
        elif entry.kind is None:
            self._output.note_unknown(entry.message)
        elif entry.kind not in BOOKKEEPING:
            detail = f"a message of the kind {entry.kind} is not part of the answer"
            self._output.note_once("ignored", "MESSAGE_IGNORED", detail, level="debug")
