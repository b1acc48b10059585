"""Combines a turn with its position in the client's request, and checks its blocks against the Warp wire's messages."""

import msgspec

from gateway.core.conversation import Block, Conversation, File, Image, Reasoning, ToolCall, ToolResult, Turn, item_of
from gateway.core.errors import InvalidRequest
from gateway.core.field_paths import FieldPaths


class IndexedTurn(msgspec.Struct, frozen=True):
    """`index` is the message's position in the client's request, or in the conversation for a turn that the gateway
    added. `paths` are the client's."""

    index: int
    turn: Turn
    paths: FieldPaths

    def part(self, position: int, block: Image | File) -> str:
        """Returns the client's path of the part at this position of the turn."""
        return self.paths.part.format(turn=self.index, item=item_of(block, position))

    def result_part(self, position: int, result: ToolResult, part: int) -> str:
        """Returns the client's path of a part of the result at this position of the turn."""
        return self.paths.result_part.format(turn=self.index, item=item_of(result, position), part=part)

    @property
    def has_image(self) -> bool:
        """Whether the turn has an image."""
        return any(isinstance(block, Image) for block in self.turn.blocks)

    @property
    def has_question(self) -> bool:
        """Whether the turn has content besides results. A user's message always has, even an empty one."""
        return bool(self.turn.text) or self.has_image or (self.turn.role == "user" and not self.turn.results)

    def check(self) -> None:
        """Raises InvalidRequest for a block that a message of this role cannot hold."""
        for block in self.turn.blocks:
            if isinstance(block, _misplaced(self.turn.role)):
                param = self.paths.turn.format(turn=self.index)
                message = (
                    f"{param} has the role {self.turn.role} and contains a block that is not allowed in this role."
                )
                raise InvalidRequest(message, param=param)


def _misplaced(role: str) -> tuple[type[Block], ...]:
    if role == "assistant":
        return ()
    return (ToolCall, Reasoning) if role in ("user", "tool") else (ToolCall, Reasoning, ToolResult)


def index_turns(conversation: Conversation) -> list[IndexedTurn]:
    turns, paths = conversation.turns, conversation.paths
    return [IndexedTurn(n if turn.index is None else turn.index, turn, paths) for n, turn in enumerate(turns)]
