"""Compares the bodies that were sent for two requests, line by line, in a form that a person can read."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.inspector.views.diff import Pair
from gateway.inspector.views.matches import Block, blocks_of, common_size
from gateway.inspector.views.sent import sent_view

# The forms of a body, the one that is compared where both have it first.
_FORMS: Final = ("json", "fields", "text", "hex")
_Op: TypeAlias = Literal["=", "-", "+"]
_AROUND: Final = 3
_MOST_HUNKS: Final = 100
_MOST_LINES: Final = 400
# So much of a long line is shown, from so many characters before what differs.
_LONGEST: Final = 400
_BEFORE: Final = 80


class SentLine(msgspec.Struct, frozen=True):
    """A line in both bodies (`=`), only in the earlier one (`-`), or only in the later one (`+`)."""

    op: _Op
    text: str


class Hunk(msgspec.Struct, frozen=True):
    """Lines that differ, with some around them. `old` and `new` are the numbers of the first one, from 1."""

    old: int
    new: int
    lines: tuple[SentLine, ...]


class SentDifference(msgspec.Struct, frozen=True):
    """How the body that was sent differs from that of the request `against`, both in this `form` (as in BodyView).
    `added` and `removed` count lines; `cut`: not all of them are in the hunks, or a body is not compared whole."""

    against: str
    form: str
    added: int
    removed: int
    hunks: tuple[Hunk, ...]
    cut: bool = False


def sent_difference(shown: Pair) -> SentDifference:
    """Compares two requests, the earlier one first. Raises InvalidRequest where one was not sent, or both have no form
    in common."""
    old, new = sent_view(shown.old), sent_view(shown.new)
    form = next((name for name in _FORMS if name in old.views and name in new.views), None)
    if form is None:
        raise InvalidRequest("What was sent for the two requests has no form in common.", code="unknown_request")
    before, after = old.views[form].split("\n"), new.views[form].split("\n")
    blocks = [*blocks_of(before, after)]
    hunks = [*_hunks(before, after, blocks)]
    shown_hunks = tuple(hunks[:_MOST_HUNKS])
    is_cut = len(hunks) > _MOST_HUNKS or any(len(hunk.lines) >= _MOST_LINES for hunk in shown_hunks)
    return SentDifference(
        shown.old.interaction.request.id,
        form,
        sum(end - begin for op, _, _, begin, end in blocks if op != "equal"),
        sum(stop - start for op, start, stop, _, _ in blocks if op != "equal"),
        shown_hunks,
        is_cut or old.cut or new.cut,
    )


def _hunks(old: Sequence[str], new: Sequence[str], blocks: Sequence[Block]) -> Iterator[Hunk]:
    lines: list[SentLine] = []
    first = (1, 1)
    for at, (op, start, stop, begin, end) in enumerate(blocks):
        if op != "equal":
            lines += _changed(old[start:stop], new[begin:end])
            continue
        same = new[begin:end]
        is_last = at == len(blocks) - 1
        if lines and not is_last and len(same) <= 2 * _AROUND:
            lines += _equal(same)
            continue
        if lines:
            yield Hunk(*first, tuple((lines + _equal(same[:_AROUND]))[:_MOST_LINES]))
            lines = []
        if not is_last:
            before = same[max(0, len(same) - _AROUND) :]
            lines = _equal(before)
            first = (stop - len(before) + 1, end - len(before) + 1)
    if lines:
        yield Hunk(*first, tuple(lines[:_MOST_LINES]))


def _equal(lines: Sequence[str]) -> list[SentLine]:
    return [SentLine("=", _part(line, 0)) for line in lines]


def _changed(old: Sequence[str], new: Sequence[str]) -> list[SentLine]:
    starts = [common_size(one, other) for one, other in zip(old, new, strict=False)]
    starts += [0] * (max(len(old), len(new)) - len(starts))
    removed = [SentLine("-", _part(line, at)) for line, at in zip(old, starts, strict=False)]
    return removed + [SentLine("+", _part(line, at)) for line, at in zip(new, starts, strict=False)]


def _part(line: str, at: int) -> str:
    """Returns a line, or of a long one the part that differs."""
    if len(line) <= _LONGEST:
        return line
    start = max(0, at - _BEFORE)
    end = start + _LONGEST
    return f"{'...' if start else ''}{line[start:end]}{'...' if end < len(line) else ''}"
