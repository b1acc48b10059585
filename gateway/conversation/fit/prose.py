"""Tool turns as plain turns, for providers that know no tool roles: nothing of a call or its result is lost."""

from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.conversation.fit.changes import changed
from gateway.conversation.sections import Called
from gateway.conversation.styles import calls_line, result_line
from gateway.notices import Notice
from gateway.policy import Labels
from gateway.profiles import Profile
from gateway.types import Block, Text, ToolCall, ToolResult, Turn

LABELS: Final = Labels()


def tool_turns_as_text(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Calls become assistant text, results user text, in the notation of flattened conversations: what a tool says
    cannot be taken for what the user says."""
    if profile.tool_turns == "native":
        return turns
    return tuple(_plain(turn, notices) if turn.calls or turn.role == "tool" else turn for turn in turns)


def _plain(turn: Turn, notices: list[Notice]) -> Turn:
    notices.append(changed(turn, "TOOL_TURN_AS_TEXT", f"{turn.role} message sent as plain text"))
    if turn.role == "tool":
        blocks = tuple(block for result in turn.results for block in _told(result))
        return msgspec.structs.replace(turn, role="user", name=None, blocks=blocks, source=None, synthesized=True)
    said = [block for block in turn.blocks if not isinstance(block, ToolCall) and block != Text("")]
    calls = [Called(call.name, call.arguments) for call in turn.calls]
    return turn.changed(*said, Text(calls_line(calls, LABELS)))


def _told(result: ToolResult) -> Iterator[Block]:
    yield Text(result_line(result.call_id, result.text, LABELS))
    yield from (part for part in result.content if not isinstance(part, Text))
