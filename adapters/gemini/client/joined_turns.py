"""Joins the contents of one answer into one turn: the SDKs keep a streamed answer in the history chunk by chunk."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from adapters.gemini import CONTENTS, DIALECT
from gateway.core.conversation import Block, Json, Reasoning, Source, Text, Turn


def joined_turns(turns: Iterable[Turn]) -> list[Turn]:
    """Returns the turns, neighbours of the assistant as one with the index of the first, whose source has each of their
    contents. Pieces of a text or of a thought are one again; an empty text beside anything else is no block."""
    joined: list[Turn] = []
    for answers, group in groupby(turns, lambda turn: turn.role == "assistant"):
        neighbours = list(group)
        joined += [_joined(neighbours)] if answers and len(neighbours) > 1 else neighbours
    return joined


def _joined(turns: Sequence[Turn]) -> Turn:
    blocks = _whole_blocks(block for turn in turns for block in turn.blocks)
    said = [block for block in blocks if block != Text("")]
    extra = {name: value for turn in turns for name, value in turn.extra.items()}
    contents: list[Json] = [dict(turn.source.value) for turn in turns if turn.source is not None]
    source = Source(DIALECT, {CONTENTS: contents})
    return msgspec.structs.replace(turns[0], blocks=tuple(said or blocks), extra=extra, source=source)


def _whole_blocks(blocks: Iterable[Block]) -> list[Block]:
    runs: list[list[Block]] = []
    for block in blocks:
        if runs and _continues(runs[-1][-1], block):
            runs[-1].append(block)
        else:
            runs.append([block])
    return [_whole(run) for run in runs]


def _continues(before: Block, block: Block) -> bool:
    """Whether a block is the next piece of the one before it. A block with a state or other fields ends there."""
    match before, block:
        case Text(), Text():
            return not (before.extra or block.extra)
        case Reasoning(), Reasoning():
            return not before.extra
        case _:
            return False


def _whole(run: Sequence[Block]) -> Block:
    last = run[-1]
    if len(run) > 1 and isinstance(last, Text | Reasoning):
        text = "".join([piece.text for piece in run if isinstance(piece, Text | Reasoning)])
        return msgspec.structs.replace(last, text=text)
    return last
