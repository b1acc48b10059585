"""Client actions -> the log of messages that they describe, as the wire's own client keeps it.

Only the root task is the answer: what its subtasks say among themselves is left out.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from adapters.warp.entry import CALL, OUTPUT, REASONING, TEXT_PATHS, Entry, Saved, text_of
from adapters.warp.field_mask import MaskError, append, update
from adapters.warp.multi_agent_pb2 import ClientAction, Message, Task
from adapters.warp.output import Output
from adapters.warp.template import Growth
from adapters.warp.transaction import Journal

_CONTENT: Final = (OUTPUT, REASONING, CALL)


class Undone(msgspec.Struct, frozen=True):
    """What a rollback did. `retracted`: the kinds of messages whose text the client had been shown already."""

    removed: list[Entry]
    restored: list[Entry]
    retracted: set[str | None]


class TaskLog:
    """Each method gives the entries that it touched. `replays` says that the request carried a log of its own, so
    that messages may be spoken of which are older than this answer. `hidden_calls` counts the calls of subtasks."""

    def __init__(self, output: Output, replays: bool) -> None:
        self.hidden_calls = 0
        self.journal: Journal[Saved] = Journal()
        self._entries: dict[str, Entry] = {}
        self._subtasks: set[str] = set()
        self._hidden: set[str] = set()
        self._nameless = 0
        self._output = output
        self._replays = replays

    def create(self, task: Task) -> list[Entry]:
        """A new task, perhaps with its first messages."""
        if task.dependencies.parent_task_id:
            self._subtasks.add(task.id)
        return self.add(task.id, task.messages)

    def add(self, task_id: str, messages: Iterable[Message]) -> list[Entry]:
        """New messages. One with an id that is known replaces the known one: its text would else come twice."""
        touched = []
        for message in messages:
            if self._is_hidden(task_id, message):
                continue
            known = self._entries.get(message.id) if message.id else None
            touched.append(self._insert(message) if known is None else self._replace(message.id, known, message))
        return touched

    def update(self, action: ClientAction.UpdateTaskMessage) -> list[Entry]:
        """Masked fields replaced; a message that is not known is added whole."""
        message, paths = action.message, action.mask.paths
        if self._is_hidden(action.task_id, message):
            return []
        entry = self._entries.get(message.id)
        if entry is None:
            if self._replays and paths and not any(path.partition(".")[0] in _CONTENT for path in paths):
                return []
            return [self._insert(message)]
        changed = entry.current()
        try:
            unknown = update(changed, message, paths)
        except MaskError as error:
            return self._skip(f"an update was skipped: {error}")
        self._note_unknown(unknown)
        return [self._replace(message.id, entry, changed)]

    def append(self, action: ClientAction.AppendToMessageContent) -> Entry | None:
        """Masked texts continued. An action on an unknown message is skipped."""
        message, paths = action.message, action.mask.paths
        key = message.id
        entry = self._entries.get(key)
        if entry is None:
            if not self._is_hidden(action.task_id, message):
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
        """The same for a text whose message is known and of its kind; None, and nothing done, for any other."""
        entry = self._entries.get(growth.key)
        if entry is None or entry.kind != growth.kind:
            return None
        self._save(growth.key, entry)
        entry.pieces.append(growth.text)
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

    def rollback(self) -> Undone | None:
        """Undo the innermost transaction; None: none was open."""
        saved = self.journal.rollback()
        if saved is None:
            return None
        undone = Undone([], [], set())
        for key, state in saved.items():
            entry = self._entries[key]
            undone.retracted.add(entry.restore(state))
            (undone.removed if state is None else undone.restored).append(entry)
            if state is None:
                del self._entries[key]
        return undone

    def _insert(self, message: Message) -> Entry:
        key = message.id or self._name()
        self._save(key, None)
        self._entries[key] = entry = Entry(message)
        return entry

    def _name(self) -> str:
        """A key for a message without an id: no text of protobuf has a lone surrogate."""
        self._nameless += 1
        return f"\ud800{self._nameless}"

    def _replace(self, key: str, entry: Entry, message: Message) -> Entry:
        self._save(key, entry)
        if entry.called and message.tool_call != entry.message.tool_call:
            self._output.note("seen", "SHOWN_CALL_REPLACED", "the backend replaced a call that had been sent already")
        entry.replace(message)
        return entry

    def _save(self, key: str, entry: Entry | None) -> None:
        if self.journal.untouched(key):
            self.journal.save(key, None if entry is None else entry.save())

    def _is_hidden(self, task_id: str, message: Message) -> bool:
        task_id = task_id or message.task_id
        if task_id not in self._subtasks:
            return False
        if message.id not in self._hidden:
            self._hidden.add(message.id)
            self.hidden_calls += message.WhichOneof("message") == CALL
            self._output.note_once("dropped", "SUBTASK_HIDDEN", "what a subtask says is not part of the answer")
        return True

    def _skip(self, detail: str) -> list[Entry]:
        self._output.note_once("dropped", "ACTION_SKIPPED", detail)
        return []

    def _note_unknown(self, paths: Iterable[str]) -> None:
        for path in paths:
            shown = path[:80] if path.isprintable() else "unprintable"
            self._output.note_once("ignored", "UNKNOWN_MASK_PATH", f"the mask path {shown} is not known")
