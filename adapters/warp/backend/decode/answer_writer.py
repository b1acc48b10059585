"""Converts entries of the task log into text, reasoning and call events, each as soon as it is certain enough."""

from typing import Final

from adapters.warp.backend.decode.calls import CallWriter
from adapters.warp.backend.decode.entry import CALL, OUTPUT, REASONING, Entry
from adapters.warp.backend.decode.output import Output
from adapters.warp.backend.provider_state import MessageState
from gateway.core.events import ReasoningDelta, ReasoningEnd, TextDelta

# Every response has these beside its content: the echo of the question and the backend's own records.
BOOKKEEPING: Final = frozenset({"user_query", "tool_call_result", "server_event", "system_query"})
# A message of its own says it, the finish, or both.
SUMMARIZED: Final = "the backend has summarized messages of the conversation"


class AnswerWriter:
    """Emits text at once unless it is held. A call waits for a commit or the finish, because a client acts on it.

    `has_output` is true once the client was sent text or a call.
    """

    def __init__(self, calls: CallWriter, provider_state: MessageState, output: Output, reasoning: bool) -> None:
        self.has_output = False
        self.calls = calls
        self._provider_state: MessageState | None = provider_state
        self._reasoning = reasoning
        self._output = output
        self._pending: dict[Entry, None] = {}

    def write(self, entry: Entry, held: bool) -> None:
        """Emits or holds what is new in an entry that was added or has changed."""
        if entry.conflicts and not held:
            self._output.note("seen", "SHOWN_TEXT_REPLACED", "the backend replaced text that had already been sent")
            entry.resolve_conflict()
        if len(entry.pieces) > entry.seen or entry.conflicts:
            if held:
                self._pending[entry] = None
            else:
                self._write_text(entry)
        elif entry.kind == CALL:
            if not entry.called:
                self._pending[entry] = None
        elif entry.kind not in (OUTPUT, REASONING):
            self._note(entry)

    def release(self) -> None:
        """Emits the held entries, which are certain now. Raises InvalidToolCall."""
        pending, self._pending = self._pending, {}
        for entry in pending:
            self.write(entry, held=False)
            if entry.kind == CALL and not entry.called:
                entry.called = True
                written = self.calls.written
                self.calls.write(entry.message)
                self.has_output |= self.calls.written > written
        self._pending.clear()

    def forget(self, entries: list[Entry]) -> None:
        """Discards the held output of entries that a rollback removed."""
        for entry in entries:
            self._pending.pop(entry, None)

    def _write_text(self, entry: Entry) -> None:
        text = entry.take_unsent()
        if entry.kind == OUTPUT:
            self.has_output = True
            if self._provider_state is not None:
                self._carry(entry, self._provider_state)
            self._output.events.append(TextDelta(text))
        elif self._reasoning:
            self._output.events.append(ReasoningDelta(text))
        else:
            self._output.note_once("dropped", "REASONING_DROPPED", "the backend sent reasoning that was not requested")

    def _carry(self, entry: Entry, provider_state: MessageState) -> None:
        """Sends the provider state once, with the first text: a client that joins the extra fields of chunks would
        duplicate it."""
        self._provider_state = None
        extra = provider_state.extra(entry.message)
        if extra:
            self._output.events.append(ReasoningEnd(extra))

    def _note(self, entry: Entry) -> None:
        if entry.kind == "model_used":
            if entry.message.model_used.is_fallback:
                name = entry.message.model_used.model_id[:80]
                detail = f"the response is from the model {name!r} instead of the requested one"
                self._output.note_once("seen", "MODEL_FALLBACK", detail)
        elif entry.kind == "summarization":
            self._output.note_once("seen", "CONVERSATION_SUMMARIZED", SUMMARIZED, level="info")
        elif entry.kind is None:
            self._output.note_unknown(entry.message)
        elif entry.kind not in BOOKKEEPING:
            detail = f"a message of the kind {entry.kind} is not part of the response"
            self._output.note_once("ignored", "MESSAGE_IGNORED", detail, level="debug")
