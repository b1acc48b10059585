"""Tool turns as plain turns, for providers that know no tool roles: nothing of a call or its result is lost."""

import msgspec

from gateway.conversation.fit.changes import changed
from gateway.notices import Notice
from gateway.profiles import Profile
from gateway.types import Block, Text, ToolCall, ToolResult, Turn


def tool_turns_as_text(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Calls become assistant text, results user text, in the notation of flattened conversations."""
    if profile.tool_turns == "native":
        return turns
    return tuple(_plain(turn, notices) if turn.calls or turn.results else turn for turn in turns)


def _plain(turn: Turn, notices: list[Notice]) -> Turn:
    notices.append(changed(turn, "TOOL_TURN_AS_TEXT", f"{turn.role} message sent as plain text"))
    blocks: list[Block] = []
    for block in turn.blocks:
        match block:
            case ToolCall():
                blocks.append(Text(f"Tool calls: Called {block.name} with args: {block.arguments}"))
            case ToolResult():
                blocks.append(Text(f"Tool result ({block.call_id}): {block.text}"))
                blocks.extend(part for part in block.content if not isinstance(part, Text))
            case _:
                blocks.append(block)
    role = "user" if turn.role == "tool" else turn.role
    return msgspec.structs.replace(turn, role=role, name=None, blocks=tuple(blocks), source=None)
