"""Combines a turn with its position in the client's request, and checks its blocks against the Warp wire's messages."""

import msgspec

from gateway.core.conversation import Block, Image, Reasoning, ToolCall, ToolResult, Turn
from gateway.core.errors import InvalidRequest


class IndexedTurn(msgspec.Struct, frozen=True):
    """`index` is the message's position in the client's request, or in the conversation for a turn that the gateway
    added."""

    index: int
    turn: Turn

    def param(self, position: int) -> str:
        """Return the client's path of a part of the message's content."""
        return f"messages[{self.index}].content[{position}]"

    @property
    def shows(self) -> bool:
        """Whether the turn has an image."""
        return any(isinstance(block, Image) for block in self.turn.blocks)

    @property
    def asks(self) -> bool:
        """Whether the turn has content besides results. A user's message always has, even an empty one."""
        return bool(self.turn.text) or self.shows or (self.turn.role == "user" and not self.turn.results)

    def check(self) -> None:
        """Raises InvalidRequest for a block that a message of this role cannot hold."""
        for block in self.turn.blocks:
            if isinstance(block, _misplaced(self.turn.role)):
                raise InvalidRequest(
                    f"messages[{self.index}] has the role {self.turn.role} and cannot hold what it holds.",
                    param=f"messages[{self.index}]",
                )


def _misplaced(role: str) -> tuple[type[Block], ...]:
    if role == "assistant":
        return ()
    return (ToolCall, Reasoning) if role in ("user", "tool") else (ToolCall, Reasoning, ToolResult)


def index_turns(turns: tuple[Turn, ...]) -> list[IndexedTurn]:
    return [IndexedTurn(n if turn.index is None else turn.index, turn) for n, turn in enumerate(turns)]
