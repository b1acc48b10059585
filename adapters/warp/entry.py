"""One message of the answer, with how much of its text the client has already been shown."""

from typing import Final

import msgspec

from adapters.warp.multi_agent_pb2 import Message

OUTPUT: Final = "agent_output"
REASONING: Final = "agent_reasoning"
CALL: Final = "tool_call"


class Saved(msgspec.Struct, frozen=True):
    """The state of an entry before a transaction."""

    message: Message
    text: str


class Entry:
    """The text is kept in the pieces it came in, not in the message: appending to a string costs its whole length.

    `shown` and `unseen` are those pieces. `conflicts` says that `shown` is no beginning of the text any more; then
    `unseen` is the whole text. `called` says that the client was given the tool call.
    """

    __slots__ = ("called", "conflicts", "kind", "message", "shown", "shown_kind", "unseen")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.kind = self.shown_kind = message.WhichOneof("message")
        self.shown: list[str] = []
        self.unseen = _pieces(_text(message))
        self.conflicts = False
        self.called = False

    def current(self) -> Message:
        """A copy of the message with its text in it."""
        message = Message()
        message.CopyFrom(self.message)
        if self.kind == OUTPUT:
            message.agent_output.text = self._joined()
        elif self.kind == REASONING:
            message.agent_reasoning.reasoning = self._joined()
        return message

    def replace(self, message: Message) -> None:
        """Become another message."""
        self._become(message, _text(message))

    def save(self) -> Saved:
        """The present state."""
        return Saved(self.message, self._joined())

    def restore(self, saved: Saved | None) -> bool:
        """Go back to a saved state, or to nothing. False: what the client was shown is taken back."""
        if saved is None:
            return not (self.shown or self.called)
        self._become(saved.message, saved.text)
        return not self.conflicts

    def settle(self) -> None:
        """Let a conflict rest: what was shown cannot be taken back. Only what is appended from now on is unseen,
        unless the message has become one of another kind."""
        if self.kind == self.shown_kind:
            self.shown, self.unseen = self.unseen, []
        else:
            self.shown, self.shown_kind = [], self.kind
        self.conflicts = False

    def show(self) -> str:
        """What was unseen until now."""
        text = "".join(self.unseen)
        self.unseen.clear()
        self.shown.append(text)
        return text

    def _become(self, message: Message, text: str) -> None:
        shown = "".join(self.shown)
        self.message, self.kind = message, message.WhichOneof("message")
        if not shown:
            self.shown_kind = self.kind
        self.conflicts = not (self.kind == self.shown_kind and text.startswith(shown))
        self.unseen = _pieces(text if self.conflicts else text[len(shown) :])

    def _joined(self) -> str:
        return "".join(self.unseen) if self.conflicts else "".join(self.shown) + "".join(self.unseen)


def _text(message: Message) -> str:
    match message.WhichOneof("message"):
        case "agent_output":
            return message.agent_output.text
        case "agent_reasoning":
            return message.agent_reasoning.reasoning
        case _:
            return ""


def _pieces(text: str) -> list[str]:
    return [text] if text else []
