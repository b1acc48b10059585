"""Shows one message at one stage."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Block, File, Image, Reasoning, Text, ToolCall, ToolResult, Turn

# What became of a message: the same, changed, written by the gateway, left out, shortened.
Mark: TypeAlias = Literal["=", "~", "+", "-", ".."]
Column: TypeAlias = Literal["client", "repaired", "trimmed", "sent"]
# How arguments are written: as an object, or as text that holds its JSON.
Form: TypeAlias = Literal["object", "text"]
# So much of one text is shown.
MOST_TEXT: Final = 64 * 2**10


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call; `arguments` is JSON text. `form`: how they are written in the request; left out where nothing says
    that this differs between stages."""

    id: str
    name: str
    arguments: str
    form: Form | None = None


class Cell(msgspec.Struct, frozen=True):
    """One message. `calls` are those it makes, `answers` the ids of those whose results it holds, `bytes` the size of
    its texts in UTF-8; `cut`: not all of it is shown. `position` is that among the messages of the stage; null: it is
    none of them."""

    mark: Mark
    role: str
    name: str | None
    text: str
    calls: tuple[Call, ...] = ()
    answers: tuple[str, ...] = ()
    reasoning: str = ""
    bytes: int = 0
    cut: bool = False
    position: int | None = None


def cell(
    turn: Turn, mark: Mark, position: int | None, text: str | None = None, forms: Sequence[Form | None] = ()
) -> Cell:
    """Returns the cell that shows a message; `text` stands for its own where the message is sent as text, and `forms`
    are those of the arguments of its calls."""
    said = text_of(turn) if text is None else text
    written = zip_longest(turn.calls, forms[: len(turn.calls)])
    calls = () if text is not None else tuple(Call(one.id, one.name, one.arguments, form) for one, form in written)
    reasoning = "\n".join(block.text for block in turn.blocks if isinstance(block, Reasoning))
    texts = [said, reasoning, *(call.arguments for call in calls)]
    return Cell(
        mark,
        turn.role,
        turn.name,
        said[:MOST_TEXT],
        tuple(msgspec.structs.replace(call, arguments=call.arguments[:MOST_TEXT]) for call in calls),
        tuple(result.call_id for result in turn.results),
        reasoning[:MOST_TEXT],
        sum(len(one.encode("utf-8", "replace")) for one in texts),
        any(len(one) > MOST_TEXT for one in texts),
        position,
    )


def left_out(turn: Turn) -> Cell:
    """Returns the cell of the stage that left a message out."""
    return Cell("-", turn.role, turn.name, "")


def written_cell(text: str) -> Cell:
    """Returns a text that stands in no message, but in what was sent."""
    return Cell("+", "", None, text[:MOST_TEXT], bytes=len(text.encode("utf-8", "replace")), cut=len(text) > MOST_TEXT)


def text_of(turn: Turn) -> str:
    """Returns the texts of a message, the results of tools among them, without its calls."""
    return "\n".join(text for block in turn.blocks if (text := _text(block)) is not None)


def _text(block: Block) -> str | None:
    match block:
        case Text():
            return block.text
        case ToolResult():
            return "\n".join(_text(part) or "" for part in block.content)
        case Image():
            return f"[image, {len(block.url)} bytes]" if block.url.startswith("data:") else f"[image {block.url}]"
        case File():
            return f"[{block.kind}, {len(msgspec.json.encode(block.part))} bytes]"
        case Reasoning() | ToolCall():
            return None
