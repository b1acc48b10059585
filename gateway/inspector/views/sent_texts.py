"""Finds the messages of a conversation in the text that it is sent as."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.adapter import SentText
from gateway.core.conversation import Conversation, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.history.transcript.render import rendered_turns

_WORD: Final = re.compile(r"\w")


class SentTexts(msgspec.Struct, frozen=True):
    """What stands in the text for each message, by its position, and behind which position what for none of them
    (-1: before all)."""

    turns: Mapping[int, str]
    written: Mapping[int, str]


def sent_texts(sent: SentText, conversation: Conversation, policy: Policy) -> SentTexts:
    """Returns the parts of a text. An adapter may write a message in a way of its own, with its calls in the format
    that the model must use: what stands between two that are found belongs to the first message between them."""
    text = f"{sent.system}\n\n{sent.text}" if sent.apart and sent.system else sent.text
    try:
        pieces = rendered_turns(conversation, policy)
    except InvalidRequest:
        pieces = []
    turns: dict[int, str] = {}
    written: dict[int, str] = {}
    waiting: list[int] = []
    end, last = 0, -1
    for position, piece in _placed(pieces, conversation.turns):
        start = text.find(piece, end) if _WORD.search(piece) else -1
        if start < 0:
            waiting.append(position)
            continue
        _give(text[end:start], waiting, last, turns, written)
        turns[position] = f"{turns[position]}\n\n{piece}" if turns.get(position) else piece
        end, last, waiting = start + len(piece), position, []
    _give(text[end:], waiting, last, turns, written)
    return SentTexts(turns, written)


def _placed(pieces: Sequence[tuple[Turn, str]], turns: Sequence[Turn]) -> list[tuple[int, str]]:
    """Returns the pieces with the positions of their messages; one result of several is a message of its own there."""
    by_index = {turn.index: at for at, turn in enumerate(turns)}
    positions = {id(turn): at for at, turn in enumerate(turns)}
    return [(positions.get(id(turn), by_index.get(turn.index, 0)), piece) for turn, piece in pieces]


def _give(between: str, waiting: Sequence[int], last: int, turns: dict[int, str], written: dict[int, str]) -> None:
    """Gives what stands between two messages to those that were not found, or else to none."""
    between = between.strip("\n")
    if waiting:
        turns.update({position: "" for position in waiting if position not in turns})
        turns[waiting[0]] += between
    elif _WORD.search(between):
        written[last] = between
