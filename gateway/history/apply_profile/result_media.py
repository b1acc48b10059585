"""Takes images and files out of tool results, for providers whose tool messages hold text only."""

import msgspec

from gateway.core.conversation import File, Image, Text, ToolResult, Turn
from gateway.core.notices import Notice
from gateway.history.apply_profile.changes import changed
from gateway.providers.profile import Profile

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
