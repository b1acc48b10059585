"""Holds one message of the response and tracks how much of its text was sent to the client."""

from typing import Final

import msgspec

from adapters.warp.multi_agent_pb2 import Message

OUTPUT: Final = "agent_output"
REASONING: Final = "agent_reasoning"
CALL: Final = "tool_call"
# The two masks that nearly every event has, and the kind of message that each belongs to.
TEXT_PATHS: Final = {"agent_output.text": OUTPUT, "agent_reasoning.reasoning": REASONING}


class Saved(msgspec.Struct, frozen=True):
    """The state of an entry before a transaction: its text was the first `count` of `pieces`."""

    message: Message
    pieces: list[str]
    count: int


class Entry:
    """One message of the response. Its text is the join of `pieces`, because every event would copy a growing string.

    The client was sent the first `seen` pieces. When the backend replaces the text, the new text may contradict what
    was sent: then the entry `conflicts`, until that is resolved. `called` is true once the client was sent the tool
    call.
    `task_id` is the task that the message was added to, or empty if the backend named none.
    """

    __slots__ = ("_contradicted", "_shown_kind", "called", "conflicts", "kind", "message", "pieces", "seen", "task_id")

    def __init__(self, message: Message, task_id: str) -> None:
        self.message = message
        self.task_id = task_id
        self.kind = self._shown_kind = message.WhichOneof("message")
        self.pieces = _pieces(text_of(message))
        self.seen = 0
        self.conflicts = False
        self.called = False
        self._contradicted = ""

    @property
    def weight(self) -> int:
        """The approximate cost in bytes of copying or rebuilding the entry; each piece adds a fixed overhead."""
        return self.message.ByteSize() + sum(map(len, self.pieces)) + 16 * len(self.pieces)

    def current(self) -> Message:
        """Returns a copy of the message with its text."""
        return self._copy("".join(self.pieces))

    def blank(self) -> Message:
        """Returns a copy of the message without its text, which is cheap to append to."""
        return self._copy("")

    def replace(self, message: Message) -> None:
        """Replaces the content of the entry by another message."""
        self._become(message, text_of(message))

    def save(self) -> Saved:
        """Returns the present state. Lists of pieces only grow, so that a count is enough."""
        return Saved(self.message, self.pieces, len(self.pieces))

    def continues_text(self, saved: Saved) -> bool:
        """Returns whether the only change since the saved state is added pieces that were not sent."""
        return saved.pieces is self.pieces and not self.conflicts and self.seen <= saved.count

    def restore(self, saved: Saved | None) -> str | None:
        """Restores a saved state, or none. Returns the kind of the message that the client was sent and that no longer
        exists, if any."""
        kind = self._shown_kind
        if saved is None:
            return kind if self.seen or self.conflicts or self.called else None
        if self.continues_text(saved):
            del self.pieces[saved.count :]
            self.message = saved.message
            return None
        self._become(saved.message, "".join(saved.pieces[: saved.count]))
        return kind if self.conflicts else None

    def resolve_conflict(self) -> None:
        """Resolves a conflict without a retraction, because sent text cannot be retracted. Only text appended from now
        on is unsent, unless the message has changed its kind."""
        self.seen = len(self.pieces) if self.kind == self._shown_kind else 0
        self._shown_kind = self.kind
        self.conflicts = False

    def take_unsent(self) -> str:
        """Returns the unsent text and marks it as sent."""
        unseen = self.pieces[self.seen :]
        self.seen = len(self.pieces)
        return "".join(unseen)

    def _become(self, message: Message, text: str) -> None:
        shown = self._contradicted if self.conflicts else "".join(self.pieces[: self.seen])
        self.message, self.kind = message, message.WhichOneof("message")
        if not shown:
            self._shown_kind = self.kind
        self.conflicts = not (self.kind == self._shown_kind and text.startswith(shown))
        if self.conflicts:
            self._contradicted, self.pieces, self.seen = shown, _pieces(text), 0
        else:
            self.pieces = _pieces(shown)
            self.seen = len(self.pieces)
            self.pieces += _pieces(text[len(shown) :])

    def _copy(self, text: str) -> Message:
        message = Message()
        message.CopyFrom(self.message)
        if self.kind == OUTPUT:
            message.agent_output.text = text
        elif self.kind == REASONING:
            message.agent_reasoning.reasoning = text
        return message


def text_of(message: Message) -> str:
    """Returns the text of an output or reasoning message, or an empty string for every other kind."""
    match message.WhichOneof("message"):
        case "agent_output":
            return message.agent_output.text
        case "agent_reasoning":
            return message.agent_reasoning.reasoning
        case _:
            return ""


def _pieces(text: str) -> list[str]:
    return [text] if text else []
