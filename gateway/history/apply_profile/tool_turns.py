"""Writes calls and results as plain turns for providers without tool roles, and takes images and files out of results
for those whose tool messages hold text only. No content is lost, or a notice says so."""

from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.core.conversation import Block, File, Image, Text, ToolCall, ToolResult, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Labels
from gateway.history.apply_profile.changes import changed
from gateway.history.transcript.render import in_call_order
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


_Media = Image | File


def fit_result_media(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Puts the images and files of a batch of results into a message of the user behind the batch, or a placeholder in
    their place. (OpenAI: the content of a tool message is text, and all results of a batch stand behind their calls.)
    """
    if profile.result_media == "keep" or not any(_shows(turn) for turn in turns):
        return turns
    fitted: list[Turn] = []
    moved: list[Turn] = []
    for turn in turns:
        if not turn.results:
            fitted += moved
            moved = []
        elif _shows(turn):
            turn, shown = _text_only(turn, moves=profile.result_media == "user", notices=notices)
            moved += shown
        fitted.append(turn)
    return (*fitted, *moved)


def _shows(turn: Turn) -> bool:
    return any(isinstance(part, _Media) for result in turn.results for part in result.content)


def _text_only(turn: Turn, *, moves: bool, notices: list[Notice]) -> tuple[Turn, list[Turn]]:
    """Returns the turn with text in its results, and a message for each result whose media are to be sent apart."""
    blocks = tuple([_named(block, moves=moves) if isinstance(block, ToolResult) else block for block in turn.blocks])
    shown: list[Turn] = []
    for result in turn.results:
        media = [part for part in result.content if isinstance(part, _Media)]
        if not media:
            continue
        kinds = ", ".join(map(_kind, media))
        if moves:
            label = Text(f"[{kinds} of tool result {result.call_id}]")
            # The client knows its parts by the place of the result.
            shown.append(Turn("user", (label, *media), index=turn.index, synthesized=True))
            detail = f"{kinds} of a tool result sent in a user message behind the results"
            notices.append(changed(turn, "RESULT_MEDIA_MOVED", detail, action="moved", call_id=result.call_id))
        else:
            detail = f"{kinds} of a tool result replaced by a placeholder"
            notices.append(changed(turn, "PART_NOT_SENT", detail, call_id=result.call_id, level="warning"))
    return turn.changed(*blocks), shown


def _named(result: ToolResult, *, moves: bool) -> ToolResult:
    """Returns a result with its media named in their place."""
    where = ": see the user message below" if moves else ""
    content = tuple([part if isinstance(part, Text) else Text(f"[{_kind(part)}{where}]") for part in result.content])
    return msgspec.structs.replace(result, content=content)


def _kind(part: _Media) -> str:
    return "image" if isinstance(part, Image) else "file"
