"""Writes tool turns as plain turns, for providers without tool roles; calls and results lose no content."""

from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.core.conversation import Block, Text, ToolCall, ToolResult, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Labels
from gateway.history.apply_profile.changes import changed
from gateway.history.transcript.call_order import in_call_order
from gateway.history.transcript.sections import Called
from gateway.history.transcript.styles import calls_line, result_line
from gateway.providers.profile import Profile

LABELS: Final = Labels()


def tool_turns_as_text(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Writes calls as assistant text and results as user text, in the notation of the transcript.

    The notation keeps tool output distinct from the user's words. Results of parallel calls stand in the order of their
    calls.
    """
    if profile.tool_turns == "native":
        return turns
    turns, moved = in_call_order(turns)
    notices += moved
    return tuple(_plain(turn, notices) if turn.calls or turn.role == "tool" else turn for turn in turns)


def _plain(turn: Turn, notices: list[Notice]) -> Turn:
    notices.append(changed(turn, "TOOL_TURN_AS_TEXT", f"{turn.role} message sent as plain text"))
    if turn.role == "tool":
        blocks = tuple(block for result in turn.results for block in _as_text(result))
        return msgspec.structs.replace(turn, role="user", name=None, blocks=blocks, source=None, synthesized=True)
    kept = [block for block in turn.blocks if not isinstance(block, ToolCall) and block != Text("")]
    calls = [Called(call.name, call.arguments) for call in turn.calls]
    return turn.changed(*kept, Text(calls_line(calls, LABELS)))


def _as_text(result: ToolResult) -> Iterator[Block]:
    yield Text(result_line(result.call_id, result.text, LABELS))
    yield from (part for part in result.content if not isinstance(part, Text))
