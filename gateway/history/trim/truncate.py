"""Cuts long texts to their head and tail around a neutral marker that counts the omitted characters."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Text, ToolResult, Turn
from gateway.core.notices import Notice
from gateway.history.pinned import PINNED_CHARS

_MARKER: Final = re.compile(r"\[elided: \d+ chars\]")

# No visible character takes more code points than this; a longer run of combining marks may be cut.
_LONGEST_CLUSTER: Final = 32
_JOINER: Final = "\u200d"


def elision(count: int) -> str:
    """Returns the marker for omitted text. Neutral and bracketed, so that no model reads it as an instruction."""
    return f"[elided: {count} chars]"


def is_elided(text: str) -> bool:
    """Returns whether the text consists of the marker alone."""
    return _MARKER.fullmatch(text) is not None


def shortened(text: str, limit: int) -> str:
    """Returns at most `limit` characters of head, marker and tail.

    Where the marker leaves no room for more, the result is the bare marker, unless the text itself is no longer than
    that. A grapheme of several code points stays whole (combining marks, joined emoji, CRLF).
    """
    marker = elision(len(text))
    if len(text) <= max(limit, len(marker)) or is_elided(text):
        return text
    room = limit - len(f"\n{marker}\n")
    if room < 2:
        return marker
    head = _back(text, (room + 1) // 2)
    tail = _forth(text, len(text) - room // 2)
    if tail - head == len(text):
        return marker
    return f"{text[:head]}\n{elision(tail - head)}\n{text[tail:]}"


def _back(text: str, cut: int) -> int:
    for at in range(cut, max(cut - _LONGEST_CLUSTER, -1), -1):
        if not _inside(text, at):
            return at
    return cut


def _forth(text: str, cut: int) -> int:
    for at in range(cut, min(cut + _LONGEST_CLUSTER, len(text) + 1)):
        if not _inside(text, at):
            return at
    return cut


def _inside(text: str, at: int) -> bool:
    """Returns whether a cut before `text[at]` would split a grapheme."""
    if at <= 0 or at >= len(text):
        return False
    before, after = text[at - 1], text[at]
    return (
        before == _JOINER
        or after == _JOINER
        or before + after == "\r\n"
        or unicodedata.category(after) in ("Mn", "Mc", "Me")
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\udc00" <= after <= "\udfff"
    )


def shorten(turns: Sequence[Turn], limit: int | None) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Returns the turns with every tool result cut to `limit` characters of text, and a Notice for each cut."""
    if limit is None:
        return tuple(turns), []
    notices: list[Notice] = []
    return tuple(_turn(turn, limit, notices) if turn.role == "tool" else turn for turn in turns), notices


def _turn(turn: Turn, limit: int, notices: list[Notice]) -> Turn:
    if all(len(result.text) <= limit or is_elided(result.text) for result in turn.results):
        return turn
    return turn.changed(
        *(
            _result(block, limit, turn.index, notices) if isinstance(block, ToolResult) else block
            for block in turn.blocks
        )
    )


def _result(result: ToolResult, limit: int, index: int | None, notices: list[Notice]) -> ToolResult:
    text = result.text
    short = shortened(text, limit)
    if short == text:
        return result
    notices.append(
        Notice(
            "trim",
            "shortened",
            "TOOL_RESULT_SHORTENED",
            f"a tool result was shortened from {len(text)} to {len(short)} characters",
            index=index,
            tool_call_id=result.call_id,
        )
    )
    return with_text(result, short)


def with_text(result: ToolResult, text: str) -> ToolResult:
    """Returns the result with one text instead of its texts; images, files and the fields of a single text stay."""
    texts = [block for block in result.content if isinstance(block, Text)]
    kept = tuple(block for block in result.content if not isinstance(block, Text))
    new = msgspec.structs.replace(texts[0], text=text) if len(texts) == 1 else Text(text)
    return msgspec.structs.replace(result, content=(new, *kept))


def shorten_pinned(turn: Turn, notices: list[Notice]) -> Turn:
    """Returns a pinned user turn with at most PINNED_CHARS characters in the place of its texts, and adds a notice.
    Other blocks stay, and so do the fields of a single text."""
    text = shortened(turn.text, PINNED_CHARS)
    if text == turn.text:
        return turn
    detail = f"a pinned user message was shortened from {len(turn.text)} to {len(text)} characters"
    notices.append(Notice("trim", "shortened", "USER_TURN_SHORTENED", detail, index=turn.index))
    texts = [place for place, block in enumerate(turn.blocks) if isinstance(block, Text)]
    first = turn.blocks[texts[0]]
    new = msgspec.structs.replace(first, text=text) if len(texts) == 1 and isinstance(first, Text) else Text(text)
    rest = [block for block in turn.blocks[texts[0] :] if not isinstance(block, Text)]
    return turn.changed(*turn.blocks[: texts[0]], new, *rest)
