"""Says which values a message had before a stage that reports a change of it, and which behind."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final

import msgspec

from gateway.core.conversation import Turn
from gateway.core.notices import NO_CHANGE, Notice, Stage
from gateway.inspector.views.alignment import Row, aligned
from gateway.inspector.views.argument_forms import Forms, argument_forms
from gateway.inspector.views.cells import text_of
from gateway.inspector.views.remade import Remade
from gateway.inspector.views.rows import COLUMNS, placed_notices, reached_stages

# What a stage of the work is shown as: the column behind it.
_COLUMN_OF: Final[Mapping[Stage, int]] = {
    "decode": 1,
    "validate": 1,
    "repair": 1,
    "state": 1,
    "classify": 2,
    "guard": 2,
    "trim": 2,
    "flatten": 3,
    "profile": 3,
    "encode": 3,
}
_MOST_CHANGES: Final = 8
_MOST_TEXT: Final = 160
_BEFORE: Final = 24


class ValueChange(msgspec.Struct, frozen=True):
    """A value of a message: its field, and what it was and is now, around the first difference of long ones; null: it
    was not there, or is not any more."""

    field: str
    was: str | None
    now: str | None


def value_changes(remade: Remade, notices: Sequence[Notice]) -> Mapping[int, tuple[ValueChange, ...]]:
    """Returns the changes of messages by the numbers of the notices that report them. Several notices about one message
    and one stage have the same ones, but for one that says that results were added: it has the one of its call."""
    rows = aligned(reached_stages(remade))
    forms = argument_forms(remade.interaction, notices)
    found: dict[int, tuple[ValueChange, ...]] = {}
    for at, numbers in placed_notices(notices, rows).items():
        for number in numbers:
            notice = notices[number]
            column = _COLUMN_OF.get(notice.stage)
            if column is not None and column < len(rows[at]) and notice.action not in NO_CHANGE:
                changed = _written_result(rows, at, column, notice) or rows[at]
                found[number] = tuple(_changes(changed, column, forms))[:_MOST_CHANGES]
    return found


def _written_result(rows: Sequence[Row], at: int, column: int, notice: Notice) -> Row | None:
    """Returns the row of the result that a notice about the calling message of a row says was added; None: there is
    none. A call whose id was made up is no fact for a notice: its result is the first one there."""
    if notice.action != "added":
        return None
    for row in rows[at + 1 :]:
        turn = row[column]
        if turn is None or row[column - 1] is not None:
            continue
        if not turn.results:
            return None
        if notice.tool_call_id in (None, *[result.call_id for result in turn.results]):
            return row
    return None


def _changes(row: Row, column: int, forms: Forms) -> Iterator[ValueChange]:
    before, after = row[column - 1], row[column]
    if before is None and after is None:
        return
    if before is None or after is None:
        yield ValueChange(
            "message", *(None if turn is None else _written(turn)[:_MOST_TEXT] for turn in (before, after))
        )
        return
    was, now = (dict(_values(turn, column - 1 + at, forms)) for at, turn in enumerate((before, after)))
    for field in {**was, **now}:
        if was.get(field) != now.get(field):
            yield ValueChange(field, *_around(was.get(field), now.get(field)))


def _values(turn: Turn, column: int, forms: Forms) -> Iterator[tuple[str, str]]:
    """Yields the fields of a message."""
    yield "role", turn.role
    if turn.name is not None:
        yield "name", turn.name
    yield "text", text_of(turn)
    for at, result in enumerate(turn.results):
        yield f"results[{at}].call_id", result.call_id
    for at, (call, form) in enumerate(zip_longest(turn.calls, forms.of(turn, COLUMNS[column])[: len(turn.calls)])):
        place = f"calls[{at}]"
        yield f"{place}.id", call.id
        yield f"{place}.name", call.name
        yield f"{place}.arguments", call.arguments
        if form is not None:
            yield f"{place}.arguments as", form


def _written(turn: Turn) -> str:
    return "\n".join([text_of(turn), *(f"{call.name}({call.arguments})" for call in turn.calls)])


def _around(was: str | None, now: str | None) -> tuple[str | None, str | None]:
    """Returns the parts of two values around their first difference."""
    pairs = enumerate(zip(was or "", now or "", strict=False))
    first = next((at for at, (one, other) in pairs if one != other), min(len(was or ""), len(now or "")))
    start = max(0, first - _BEFORE)
    return _part(was, start), _part(now, start)


def _part(value: str | None, start: int) -> str | None:
    if value is None:
        return None
    end = start + _MOST_TEXT
    return f"{'…' if start else ''}{value[start:end]}{'…' if end < len(value) else ''}"
