"""A turn together with the place where the client wrote it, and what of it the Warp wire's messages can hold."""

import msgspec

from gateway.errors import InvalidRequest, Unsupported
from gateway.types import Block, File, Image, Reasoning, ToolCall, ToolResult, Turn


class Placed(msgspec.Struct, frozen=True):
    """`index` is the message's position in the client's request, or in the conversation for a turn of the gateway."""

    index: int
    turn: Turn

    def param(self, position: int) -> str:
        """The client's path of a part of the message's content."""
        return f"messages[{self.index}].content[{position}]"

    @property
    def shows(self) -> bool:
        """It has an image."""
        return any(isinstance(block, Image) for block in self.turn.blocks)

    @property
    def asks(self) -> bool:
        """It has something to say besides results; a user's message always has, even an empty one."""
        return bool(self.turn.text) or self.shows or (self.turn.role == "user" and not self.turn.results)

    def check(self) -> None:
        """Raises Unsupported for a part, InvalidRequest for a block, that a message of this role cannot hold."""
        for position, block in enumerate(self.turn.blocks):
            if isinstance(block, File):
                raise unsupported_part(f"{block.kind} parts", self.param(position))
            if isinstance(block, Image) and self.turn.role != "user":
                raise unsupported_part(f"images in {self.turn.role} messages", self.param(position))
            if isinstance(block, _misplaced(self.turn.role)):
                raise InvalidRequest(
                    f"messages[{self.index}] has the role {self.turn.role} and cannot hold what it holds.",
                    param=f"messages[{self.index}]",
                )


def _misplaced(role: str) -> tuple[type[Block], ...]:
    if role == "assistant":
        return ()
    return (ToolCall, Reasoning) if role in ("user", "tool") else (ToolCall, Reasoning, ToolResult)


def unsupported_part(what: str, param: str) -> Unsupported:
    return Unsupported(f"{param} is not supported here: this backend takes no {what}.", param=param)


def place(turns: tuple[Turn, ...]) -> list[Placed]:
    return [Placed(n if turn.index is None else turn.index, turn) for n, turn in enumerate(turns)]
