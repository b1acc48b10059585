"""One message of the answer, with how much of its text the client has already been shown."""

from typing import Final

import msgspec

from adapters.warp.multi_agent_pb2 import Message

OUTPUT: Final = "agent_output"
REASONING: Final = "agent_reasoning"
CALL: Final = "tool_call"
# The two masks that nearly every event has, and the kind of message they belong to.
TEXT_PATHS: Final = {"agent_output.text": OUTPUT, "agent_reasoning.reasoning": REASONING}


class Saved(msgspec.Struct, frozen=True):
    """The state of an entry before a transaction: its text was the first `count` of `pieces`."""

    message: Message
    pieces: list[str]
    count: int


class Entry:
    """The text is the join of `pieces`: a string that grows would be copied by every event.

    The client was shown the first `seen` pieces. When the backend replaces text, that may stop being true of the
    new one: then the entry `conflicts`, until it is settled. `called` says that the client was given the tool call.
    """

    __slots__ = ("_contradicted", "_shown_kind", "called", "conflicts", "kind", "message", "pieces", "seen")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.kind = self._shown_kind = message.WhichOneof("message")
        self.pieces = _pieces(text_of(message))
        self.seen = 0
        self.conflicts = False
        self.called = False
        self._contradicted = ""

    def current(self) -> Message:
        """A copy of the message with its text in it."""
        return self._copy("".join(self.pieces))

    def blank(self) -> Message:
        """A copy of the message without its text, which costs nothing to append to."""
        return self._copy("")

    def replace(self, message: Message) -> None:
        """Become another message."""
        self._become(message, text_of(message))

    def save(self) -> Saved:
        """The present state. Pieces are only ever added to a list, so that a count is enough."""
        return Saved(self.message, self.pieces, len(self.pieces))

    def restore(self, saved: Saved | None) -> str | None:
        """Go back to a saved state, or to nothing. Gives the kind of what the client was shown and is no more."""
        kind = self._shown_kind
        if saved is None:
            return kind if self.seen or self.conflicts or self.called else None
        self._become(saved.message, "".join(saved.pieces[: saved.count]))
        return kind if self.conflicts else None

    def settle(self) -> None:
        """Let a conflict rest: what was shown cannot be taken back. Only what is appended from now on is unseen,
        unless the message has become one of another kind."""
        self.seen = len(self.pieces) if self.kind == self._shown_kind else 0
        self._shown_kind = self.kind
        self.conflicts = False

    def show(self) -> str:
        """What was unseen until now."""
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
    """The text of an answer's or a reasoning's message; empty for every other kind."""
    match message.WhichOneof("message"):
        case "agent_output":
            return message.agent_output.text
        case "agent_reasoning":
            return message.agent_reasoning.reasoning
        case _:
            return ""


def _pieces(text: str) -> list[str]:
    return [text] if text else []
