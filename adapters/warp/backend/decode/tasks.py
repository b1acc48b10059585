"""Applies client actions to a log of messages, as the wire's own client does.

Only the root task is the response; messages of its subtasks are left out. The root is the task that has no parent. A
backend that was sent a task continues that one.

A move to a new task shortens what the backend's model reads, and changes nothing that the user sees, as in the wire's
own client: the moved messages remain part of the response and may grow in their new task, and those in their place
never become part of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from adapters.warp.backend.decode.delta_fast_path import Growth
from adapters.warp.backend.decode.entry import CALL, OUTPUT, REASONING, TEXT_PATHS, Entry, Saved, text_of
from adapters.warp.backend.decode.field_mask import MaskError, append, update
from adapters.warp.backend.decode.output import Output
from adapters.warp.backend.decode.transaction import Journal
from adapters.warp.multi_agent_pb2 import Citation, ClientAction, Message, Task
from gateway.core.errors import BackendProtocolError

# A short update or rollback may cause the copy of a long message. Backends rewrite short messages or rewrite rarely;
# the total of their rewriting stays far below this many bytes.
MOST_REWRITTEN: Final = 1 << 28
_CONTENT: Final = (OUTPUT, REASONING, CALL)


class RollbackEntry(msgspec.Struct, frozen=True):
    """The result of a rollback. `retracted`: the kinds of messages whose text the client had already been sent."""

    removed: list[Entry]
    restored: list[Entry]
    retracted: set[str | None]


class TaskLog:
    """The log of messages. Each method returns the entries that it changed. `replays` is true if the request carried a
    log of its own, so that actions may refer to messages older than this response; `root` is the task of that log.
    `hidden_calls` counts the calls of subtasks.

    Any method raises BackendProtocolError when the backend rewrote its response too often.
    """

    def __init__(self, output: Output, replays: bool, root: str | None) -> None:
        self.hidden_calls = 0
        self.journal: Journal[Saved] = Journal()
        self._entries: dict[str, Entry] = {}
        self._roots: set[str] = set()
        self._sent = root
        self._subtasks: set[str] = set()
        self._targets: set[str] = set()
        self._hidden: set[str] = set()
        self._replacements: set[str] = set()
        self._nameless = 0
        self._rewritten = 0
        self._output = output
        self._replays = replays

    def declare(self, task: Task) -> None:
        """Records whether a task is a root or a subtask. A task that messages were moved to stays a subtask."""
        is_subtask = task.dependencies.parent_task_id or task.id in self._targets
        (self._subtasks if is_subtask else self._roots).add(task.id)

    def is_open(self, task_id: str) -> bool:
        """Returns whether it is still unknown if this task is the response: no root was declared, and the task is not
        known as a subtask."""
        return bool(task_id) and not self.rooted and task_id != self._sent and task_id not in self._subtasks

    def citations(self) -> Iterator[Citation]:
        """Yields the documents that the messages of this response cite, also those of a command."""
        for entry in self._entries.values():
            yield from entry.message.citations
            yield from entry.message.tool_call.run_shell_command.citations

    @property
    def rooted(self) -> bool:
        """Whether the root task is known; messages of any other task are not part of the response."""
        return bool(self._roots)

    def add(self, task_id: str, messages: Iterable[Message]) -> list[Entry]:
        """Adds new messages. A message with a known id replaces the known one, because its text would otherwise occur
        twice."""
        touched = []
        for message in messages:
            if self._is_hidden(task_id, message):
                continue
            known = self._entries.get(message.id) if message.id else None
            touched.append(
                self._insert(task_id, message) if known is None else self._replace(message.id, known, message)
            )
        return touched

    def update(self, action: ClientAction.UpdateTaskMessage) -> list[Entry]:
        """Replaces the masked fields. An unknown message is added whole."""
        message, paths = action.message, action.mask.paths
        if self._is_hidden(action.task_id, message):
            return []
        entry = self._entries.get(message.id)
        if entry is None:
            if self._replays and paths and not any(path.partition(".")[0] in _CONTENT for path in paths):
                return []
            return [self._insert(action.task_id, message)]
        self._charge(entry)
        changed = entry.current()
        try:
            unknown = update(changed, message, paths)
        except MaskError as error:
            return self._skip(f"an update was skipped: {error}")
        self._note_unknown(unknown)
        return [self._replace(message.id, entry, changed)]

    def append(self, action: ClientAction.AppendToMessageContent) -> Entry | None:
        """Appends to the masked texts. An action on an unknown message is skipped."""
        message, paths = action.message, action.mask.paths
        key = message.id
        if self._is_hidden(action.task_id, message):
            return None
        entry = self._entries.get(key)
        if entry is None:
            self._skip("a text for an unknown message was skipped")
            return None
        if len(paths) == 1 and TEXT_PATHS.get(paths[0], "") == entry.kind:
            piece = message.agent_output.text if entry.kind == OUTPUT else message.agent_reasoning.reasoning
            self._save(key, entry)
            if piece:
                entry.pieces.append(piece)
            return entry
        return self._append_masked(key, entry, message, paths)

    def grow(self, growth: Growth) -> Entry | None:
        """Appends a text to a known message of the same kind, in its task or the one that it was moved to. For any
        other message, returns None and changes nothing."""
        target, text, _ = growth
        entry = self._entries.get(target.key)
        if entry is None or entry.kind != target.kind:
            return None
        if entry.task_id != target.task_id and target.task_id not in self._targets:
            return None
        self._save(target.key, entry)
        entry.pieces.append(text)
        return entry

    def _append_masked(self, key: str, entry: Entry, message: Message, paths: Sequence[str]) -> Entry | None:
        changed = entry.blank()
        try:
            unknown = append(changed, message, paths)
        except MaskError as error:
            self._skip(f"a text was skipped: {error}")
            return None
        self._note_unknown(unknown)
        if changed.WhichOneof("message") != entry.kind:
            return self._replace(key, entry, changed)
        self._save(key, entry)
        entry.message = changed
        entry.pieces += filter(None, [text_of(changed)])
        return entry

    def rollback(self) -> RollbackEntry | None:
        """Undoes the innermost transaction. Returns None if none was open."""
        saved = self.journal.rollback()
        if saved is None:
            return None
        undone = RollbackEntry([], [], set())
        for key, state in saved.items():
            entry = self._entries[key]
            if state is not None and not entry.continues_text(state):
                self._charge(entry)
            undone.retracted.add(entry.restore(state))
            (undone.removed if state is None else undone.restored).append(entry)
            if state is None:
                del self._entries[key]
                self._replacements.discard(key)
        return undone

    def move(self, action: ClientAction.MoveMessagesToNewTask) -> bool:
        """Moves messages to a new task and puts others in their place. Returns False for a range whose ends are not
        messages of this response, unless they may be older.

        What is moved remains part of the response, so that only the ids of the new messages are kept: what they say is
        not part of it. As in the wire's own client, the new task may be a subtask that exists, and outlives a rollback.
        Raises BackendProtocolError for an unknown task, and for a new one without a name or that is the response.
        """
        source, target = action.source_task_id, action.new_task.id
        is_response = self._is_response(source)
        if not source or not (is_response or source in self._subtasks):
            raise BackendProtocolError("The backend moved messages of a task that does not exist.")
        if not target or target == self._sent or target in self._roots or (is_response and target == source):
            raise BackendProtocolError("The backend moved messages to a task that is not new.")
        self._subtasks.add(target)
        self._targets.add(target)
        ends = (action.first_message_id, action.last_message_id)
        known = self._replays or not is_response or all(end in self._entries for end in ends)
        for message in action.replacement_messages:
            if message.id and message.id not in self._entries:
                self._save(message.id, None)
                self._entries[message.id] = Entry(Message(), source)
                self._replacements.add(message.id)
        return known

    def _is_response(self, task_id: str) -> bool:
        """Returns whether new messages of a task are part of the response: without a root, those of any task that is
        not known as a subtask."""
        if not task_id or task_id == self._sent or task_id in self._roots:
            return True
        return not (self._roots or task_id in self._subtasks)

    def _insert(self, task_id: str, message: Message) -> Entry:
        key = message.id or self._name()
        self._save(key, None)
        self._entries[key] = entry = Entry(message, task_id or message.task_id)
        return entry

    def _name(self) -> str:
        """Creates a key for a message without an id. The key has a lone surrogate, which no protobuf text can
        contain."""
        self._nameless += 1
        return f"\ud800{self._nameless}"

    def _replace(self, key: str, entry: Entry, message: Message) -> Entry:
        self._save(key, entry)
        self._charge(entry)
        if entry.called and message.tool_call != entry.message.tool_call:
            self._output.note("seen", "SHOWN_CALL_REPLACED", "the backend replaced a call that had already been sent")
        entry.replace(message)
        return entry

    def _save(self, key: str, entry: Entry | None) -> None:
        if self.journal.untouched(key):
            self.journal.save(key, None if entry is None else entry.save())

    def _charge(self, entry: Entry) -> None:
        """Counts the cost of copying or rebuilding an entry. Raises BackendProtocolError when the total is too
        large."""
        self._rewritten += entry.weight
        if self._rewritten > MOST_REWRITTEN:
            raise BackendProtocolError(
                "The backend rewrote its response too often.", code="upstream_response_too_large"
            )

    def _is_hidden(self, task_id: str, message: Message) -> bool:
        if message.id in self._replacements:
            return True
        task_id = task_id or message.task_id
        if task_id == self._sent:
            # The backend continues the task that it was sent, which needs no creation.
            self._roots.add(task_id)
        if self._is_response(task_id) or (task_id in self._targets and message.id in self._entries):
            return False
        if message.id not in self._hidden:
            self._hidden.add(message.id)
            self.hidden_calls += message.WhichOneof("message") == CALL
            self._output.note_once("dropped", "SUBTASK_HIDDEN", "the text of a subtask is not part of the response")
        return True

    def _skip(self, detail: str) -> list[Entry]:
        self._output.note_once("dropped", "ACTION_SKIPPED", detail)
        return []

    def _note_unknown(self, paths: Iterable[str]) -> None:
        for path in paths:
            shown = path[:80] if path.isprintable() else "unprintable"
            self._output.note_once("ignored", "UNKNOWN_MASK_PATH", f"the mask path {shown} is not known")
