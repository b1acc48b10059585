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

    `shown` and `unseen` are those pieces. `called` says that the client was given the tool call.
    """

    __slots__ = ("called", "kind", "message", "shown", "unseen")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.kind = message.WhichOneof("message")
        self.shown: list[str] = []
        self.unseen = _pieces(_text(message))
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

    def replace(self, message: Message) -> bool:
        """Become another message. False: it contradicts what the client was shown, which cannot be taken back."""
        kind, self.message = self.kind, message
        self.kind = message.WhichOneof("message")
        return self._become(_text(message), self.kind == kind)

    def save(self) -> Saved:
        """The present state."""
        return Saved(self.message, self._joined())

    def restore(self, saved: Saved | None) -> bool:
        """Go back to a saved state, or to nothing. False: what the client was shown is taken back."""
        if saved is None:
            return not (self.shown or self.called)
        kind, self.message = self.kind, saved.message
        self.kind = saved.message.WhichOneof("message")
        return self._become(saved.text, self.kind == kind)

    def _become(self, text: str, same_kind: bool) -> bool:
        shown = "".join(self.shown)
        if same_kind and text.startswith(shown):
            self.unseen = _pieces(text[len(shown) :])
            return True
        # What follows is shown as it comes; what stood before stays as the client saw it.
        self.shown, self.unseen = (_pieces(text), []) if same_kind else ([], _pieces(text))
        return not shown

    def _joined(self) -> str:
        return "".join(self.shown) + "".join(self.unseen)


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
