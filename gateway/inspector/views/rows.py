"""Shows the messages of a request at every stage side by side, in rows of the same message. Where the backend gets one
text, the messages are found in it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from gateway.adapter import SentText
from gateway.core.conversation import Conversation, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.transcript.render import rendered_turns
from gateway.inspector.views.alignment import Row, aligned, same
from gateway.inspector.views.argument_forms import Forms, argument_forms
from gateway.inspector.views.cells import Cell, Column, Mark, cell, left_out, text_of, written_cell
from gateway.inspector.views.remade import Remade

_WORD: Final = re.compile(r"\w")

COLUMNS: Final[tuple[Column, ...]] = ("client", "repaired", "trimmed", "sent")


class SentTexts(msgspec.Struct, frozen=True):
    """The part of the text for each message, by its position, and the parts for none of them, by the position before
    them (-1: before all)."""

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


class MessageRow(msgspec.Struct, frozen=True):
    """One message: its index in the request (null: the gateway wrote it; below 0: it was stored), a cell for each stage
    (null: it is not there) and the numbers of the notices about it."""

    index: int | None
    cells: Mapping[Column, Cell | None]
    notices: tuple[int, ...] = ()


def message_rows(remade: Remade, notices: Sequence[Notice]) -> list[MessageRow]:
    """Returns the rows of a request with these notices."""
    reached = reached_stages(remade)
    rows = aligned(reached)
    texts = _texts(remade)
    placed = placed_notices(notices, rows)
    forms = argument_forms(remade.interaction, notices)
    positions = [{id(turn): at for at, turn in enumerate(stage)} for stage in reached]
    shown: list[MessageRow] = [*_written(texts, -1)]
    for at, row in enumerate(rows):
        cells = _cells(row, texts, positions, forms)
        shown.append(MessageRow(_index(row), cells, placed.get(at, ())))
        if len(row) == len(COLUMNS) and (sent := row[-1]) is not None:
            shown += _written(texts, positions[-1][id(sent)])
    return shown


def reached_stages(remade: Remade) -> Sequence[Sequence[Turn]]:
    """Returns the messages of each stage that the request came to."""
    turns = remade.turns
    return [stage for stage in (turns.client, turns.repaired, turns.trimmed, turns.sent) if stage]


def _texts(remade: Remade) -> SentTexts | None:
    """Returns the parts of the text that is sent; None where the messages are sent as such."""
    exchange = None if remade.run is None else remade.run.exchange
    if exchange is None or exchange.request.sent_text is None:
        return None
    return sent_texts(exchange.request.sent_text, exchange.conversation, remade.policy)


def _written(texts: SentTexts | None, position: int) -> Iterable[MessageRow]:
    """Yields the row of what the adapter wrote behind a message of its own."""
    if texts is not None and position in texts.written:
        cells: dict[Column, Cell | None] = dict.fromkeys(COLUMNS)
        yield MessageRow(None, {**cells, "sent": written_cell(texts.written[position])})


def _index(row: Row) -> int | None:
    return next((turn.index for turn in row if turn is not None), None)


def _cells(
    row: Row, texts: SentTexts | None, positions: Sequence[Mapping[int, int]], forms: Forms
) -> dict[Column, Cell | None]:
    cells: dict[Column, Cell | None] = dict.fromkeys(COLUMNS)
    before: Turn | None = None
    for at, (column, turn) in enumerate(zip(COLUMNS, row, strict=False)):
        if turn is not None:
            position = positions[at][id(turn)]
            text = None if texts is None or column != "sent" else texts.turns.get(position)
            written = forms.of(turn, column)
            mark: Mark = "=" if at == 0 else _mark(before, turn, column)
            if mark == "=" and before is not None and written != forms.of(before, COLUMNS[at - 1]):
                mark = "~"
            cells[column] = cell(turn, mark, position, text, written)
        elif before is not None:
            cells[column] = left_out(before)
        before = turn
    return cells


def _mark(before: Turn | None, turn: Turn, column: Column) -> Literal["=", "~", "+", ".."]:
    if before is None:
        return "+"
    if same(before, turn):
        return "="
    return ".." if column == "trimmed" and len(text_of(turn)) < len(text_of(before)) else "~"


def placed_notices(notices: Sequence[Notice], rows: Sequence[Row]) -> dict[int, tuple[int, ...]]:
    """Returns the numbers of the notices about each row: of several messages with one index, those about the call."""
    by_index: dict[int, list[int]] = {}
    by_call: dict[tuple[int, str], int] = {}
    for at, row in enumerate(rows):
        index = _index(row)
        if index is not None:
            by_index.setdefault(index, []).append(at)
            by_call |= {(index, call): at for turn in row if turn is not None for call in _calls(turn)}
    found: dict[int, tuple[int, ...]] = {}
    for number, notice in enumerate(notices):
        if notice.index is not None and notice.index in by_index:
            first = by_index[notice.index][0]
            at = by_call.get((notice.index, notice.tool_call_id or ""), first)
            found[at] = (*found.get(at, ()), number)
    return found


def _calls(turn: Turn) -> Iterable[str]:
    yield from (result.call_id for result in turn.results)
    yield from (call.id for call in turn.calls)
