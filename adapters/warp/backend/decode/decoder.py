"""Decodes the Warp wire's response: SSE frames, each a base64 protobuf message that edits a log of messages.

The response is the final content of the root task's log, and what was moved from it to a new task. Its text is sent as
it grows. A transaction's text is held until the commit (`rollback: buffer`) or sent at once (`stream`). In the latter
case a rollback of text that was sent fails the response, because sent text cannot be retracted. Calls always wait for
the commit or the finish.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from adapters.warp.backend.decode.answer_writer import SUMMARIZED, AnswerWriter
from adapters.warp.backend.decode.calls import CallWriter
from adapters.warp.backend.decode.entry import OUTPUT
from adapters.warp.backend.decode.finish import (
    REASONS,
    describe_citations,
    describe_context_window,
    finish_error,
    read_pruned_media,
    read_usage,
)
from adapters.warp.backend.decode.frames import FrameReader
from adapters.warp.backend.decode.output import Output, unknown_numbers
from adapters.warp.backend.decode.tasks import TaskLog
from adapters.warp.backend.encode.structured import history_task
from adapters.warp.backend.options import WarpOptions
from adapters.warp.backend.provider_state import MessageState, read_provider_state
from adapters.warp.multi_agent_pb2 import ClientAction, ResponseEvent, StreamFinished, StreamInit
from gateway.adapter import DecoderExtensions
from gateway.core.conversation import Conversation
from gateway.core.errors import INCOMPLETE, BackendError, BackendProtocolError, BackendRejected, BackendTruncated
from gateway.core.events import Event, Finish, Reason, ResponseStart
from gateway.framing.sse import SSEDecoder
from gateway.wires.event_stream import empty_response

# They describe the task itself: its title, its summary, the backend's memory of it.
METADATA: Final = frozenset({"update_task_summary", "update_task_description", "update_task_server_data"})
# How many messages were moved, where the number is missing or one.
_FEW: Final = {0: "messages", 1: "a message"}


class WarpDecoder:
    """Decodes one response. See `gateway.adapter.Decoder` and, for what a transaction holds back, `Holding`."""

    def __init__(self, options: WarpOptions, conversation: Conversation, max_event: int) -> None:
        self.done = False
        self.progress = 0
        self._options = options
        self._conversation = conversation
        self._sse = SSEDecoder(max_event)
        self._output = Output()
        self._frames = FrameReader(max_event, options.accept_hex, self._output)
        replays = options.encoding == "structured"
        self._log = TaskLog(self._output, replays, history_task(conversation) if replays else None)
        self._waiting: deque[ClientAction] = deque()
        self._provider_state = MessageState(options)
        self._calls = CallWriter(options, conversation, self._provider_state, self._output)
        self._answer = AnswerWriter(self._calls, self._provider_state, self._output, options.reasoning)
        # A response that is not streamed reaches the client only when it is complete, so that buffering costs nothing.
        self._buffers = options.rollback == "buffer" or not conversation.stream
        self._started = False
        self._actions: Mapping[str, Callable[[ClientAction], None]] = {
            "create_task": self._create_task,
            "add_messages_to_task": self._add_messages,
            "update_task_message": self._update_message,
            "append_to_message_content": self._append,
            "begin_transaction": self._begin,
            "commit_transaction": self._commit,
            "rollback_transaction": self._rollback,
            "move_messages_to_new_task": self._move,
        }

    @property
    def extensions(self) -> DecoderExtensions:
        """Returns the part that holds the events of a transaction back."""
        return DecoderExtensions(holding=self)

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events of the next bytes. Raises BackendError."""
        try:
            for frame in self._sse.feed(data):
                self._frame(frame)
            if self._sse.fault is not None and not self.done:
                raise self._sse.fault
        except BackendError as error:
            error.keep(self._output.drain())
            raise
        return self._output.drain()

    def close(self) -> list[Event]:
        """Returns the events at the end of the bytes. A last frame without its blank line counts if it is whole. Raises
        BackendError."""
        return [] if self.done else self._close()

    def _close(self) -> list[Event]:
        half = False
        try:
            frame = self._sse.tail()
            if frame is not None:
                self._frame(frame)
        except BackendProtocolError:
            half = True  # handled below
        except BackendError as error:
            error.keep(self._output.drain())
            raise
        if self.done:
            return self._output.drain()
        truncated = BackendTruncated(INCOMPLETE) if self._started or half else empty_response()
        truncated.keep(self._output.drain())
        raise truncated

    def _frame(self, data: bytes) -> None:
        if self.done:
            self._output.note_once("ignored", "LATE_EVENT", "the backend sent more data after the finish")
            return
        growth = None if self._waiting else self._frames.growth(data)
        if growth is not None and (entry := self._log.grow(growth)) is not None:
            self._answer.write(entry, self._held)
            self.progress += 1
            return
        try:
            event = self._frames.read(data)
        except BackendProtocolError as error:
            if self._options.strict_frames or error.code == "upstream_event_too_large":
                raise
            self._output.events += error.notices
            return
        if event is not None:
            self._event(event)

    def _event(self, event: ResponseEvent) -> None:
        kind = event.WhichOneof("type")
        if kind == "client_actions":
            if not self._started:
                self._start(None)
            for action in event.client_actions.actions:
                self._arrive(action)
                self.progress += 1
        elif kind == "init":
            self._init(event.init)
        elif kind == "finished":
            self._finish(event.finished)
        elif event.ByteSize():
            self._output.note_unknown(event)

    def _init(self, init: StreamInit) -> None:
        self._provider_state.conversation_id = self._provider_state.conversation_id or init.conversation_id
        if self._started:
            self._output.note_once("ignored", "LATE_INIT", "the backend sent a second start event")
        else:
            self._start(init.request_id or None)

    def _start(self, response_id: str | None) -> None:
        self._started = True
        self._output.events.append(ResponseStart(response_id))

    def _arrive(self, action: ClientAction) -> None:
        """Applies the action at once. An action on a task that was not created yet waits, with all actions after it,
        until the root task is known."""
        if action.HasField("create_task"):
            self._log.declare(action.create_task.task)
        if self._log.rooted and not self._waiting:
            return self._action(action)
        self._waiting.append(action)
        while self._waiting and not self._log.is_open(_task_of(self._waiting[0])):
            self._action(self._waiting.popleft())
        return None

    def _action(self, action: ClientAction) -> None:
        kind = action.WhichOneof("action")
        act = self._actions.get(kind or "")
        if act is not None:
            act(action)
        elif kind is None:
            self._output.note_unknown(action)
        elif kind not in METADATA:
            self._output.note_once("ignored", "ACTION_IGNORED", f"the action {kind} has no effect here", level="debug")

    def _create_task(self, action: ClientAction) -> None:
        task = action.create_task.task
        for entry in self._log.add(task.id, task.messages):
            self._answer.write(entry, self._held)

    def _add_messages(self, action: ClientAction) -> None:
        added = action.add_messages_to_task
        for entry in self._log.add(added.task_id, added.messages):
            self._answer.write(entry, self._held)

    def _update_message(self, action: ClientAction) -> None:
        for entry in self._log.update(action.update_task_message):
            self._answer.write(entry, self._held)

    def _append(self, action: ClientAction) -> None:
        entry = self._log.append(action.append_to_message_content)
        if entry is not None:
            self._answer.write(entry, self._held)

    def _move(self, action: ClientAction) -> None:
        moved = action.move_messages_to_new_task
        if self._log.move(moved):
            count = moved.expected_message_count
            which = _FEW.get(count, f"{count} messages")
            detail = f"the backend moved {which} to another task; what was said remains"
            self._output.note("seen", "MESSAGES_MOVED", detail, level="info")
        else:
            self._output.note_once("dropped", "ACTION_SKIPPED", "a move of unknown messages had no effect")

    @property
    def _held(self) -> bool:
        return self._buffers and self._log.journal.open

    def _begin(self, _: ClientAction) -> None:
        self._log.journal.begin()

    def _commit(self, _: ClientAction) -> None:
        if not self._log.journal.commit():
            self._note_unbalanced("commit")
        elif not self._log.journal.open:
            self._answer.release()

    def _rollback(self, _: ClientAction) -> None:
        undone = self._log.rollback()
        if undone is None:
            return self._note_unbalanced("rollback")
        self._answer.forget(undone.removed)
        for entry in undone.restored:
            self._answer.write(entry, self._held)
        if OUTPUT in undone.retracted:
            raise BackendRejected(
                "The backend rolled back a part of the response that had already been sent.",
                code="upstream_rolled_back",
            )
        if undone.removed or undone.restored:
            changed = len(undone.removed) + len(undone.restored)
            self._output.note("dropped", "ROLLED_BACK", f"the backend rolled back its changes to {changed} messages")
        return None

    def _note_unbalanced(self, what: str) -> None:
        self._output.note_once("ignored", "TRANSACTION_UNBALANCED", f"a {what} without a transaction had no effect")

    def _finish(self, finished: StreamFinished) -> None:
        error = finish_error(finished)
        if error is not None:
            raise error
        if not self._started:
            self._start(None)
        for action in self._waiting:
            self._action(action)
        if self._log.journal.open:
            self._output.note_once(
                "seen", "TRANSACTION_OPEN", "the response finished inside a transaction, which is kept"
            )
        self._answer.release()
        raw = finished.WhichOneof("reason")
        reason = REASONS[raw]
        self._judge_emptiness(reason)
        self._note_finish(finished, raw)
        usage = read_usage(finished, self._is_continued())
        if usage is not None:
            self._output.events.append(usage)
        self._output.events.append(Finish("tool_calls" if reason == "stop" and self._calls.written else reason, raw))
        self.done = True

    def _note_finish(self, finished: StreamFinished, raw: str | None) -> None:
        if raw is None and (numbers := unknown_numbers(finished)):
            detail = f"the finish has no known reason, but unknown fields ({numbers}); read as stop"
            self._output.note("changed", "FINISH_REASON_UNKNOWN", detail)
        if pruned := read_pruned_media(finished):
            self._output.note("dropped", "MEDIA_PRUNED", f"the backend left out {pruned} images or files")
        if cited := describe_citations(self._log.citations()):
            detail = f"the backend does not say which words its citations belong to: {cited}"
            self._output.note("ignored", "FIELD_NOT_SHOWN", detail, level="debug")
        if window := describe_context_window(finished.conversation_usage_metadata):
            self._output.note("seen", "CONTEXT_WINDOW", window, level="debug")
        if finished.conversation_usage_metadata.summarized:
            self._output.note_once("seen", "CONVERSATION_SUMMARIZED", SUMMARIZED, level="info")

    def _judge_emptiness(self, reason: Reason) -> None:
        if self._answer.has_output or reason != "stop":
            return
        if self._calls.dropped or self._log.hidden_calls:
            raise BackendRejected(
                "The response contains only calls of tools that the client does not have.",
                code="upstream_unsupported_tool",
            )
        if self._options.empty_answer == "error":
            raise BackendRejected("The backend finished without any output.", code="upstream_empty_answer")

    def _is_continued(self) -> bool:
        """Returns whether the request named a conversation of the backend."""
        if self._options.encoding != "structured":
            return False
        turns = self._conversation.turns
        extras = (extra for turn in turns for extra in (turn.extra, *(call.extra for call in turn.calls)))
        return any(read_provider_state(extra).conversation_id for extra in extras)


def _task_of(action: ClientAction) -> str:
    """Returns the task whose messages an action edits, or an empty string if the action edits none or names no task."""
    match action.WhichOneof("action"):
        case "add_messages_to_task":
            added = action.add_messages_to_task
            return added.task_id or next((message.task_id for message in added.messages if message.task_id), "")
        case "update_task_message":
            return action.update_task_message.task_id or action.update_task_message.message.task_id
        case "append_to_message_content":
            return action.append_to_message_content.task_id or action.append_to_message_content.message.task_id
        case "move_messages_to_new_task":
            return action.move_messages_to_new_task.source_task_id
        case _:
            return ""
