"""Formats an explanation for a terminal: faults, before and after side by side, changes, and what is sent."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.requirements import broken
from gateway.diagnostics.explanation import Encoded, ExplainedCandidate, Explanation, SchemaFacts
from gateway.diagnostics.message_words import message_words
from gateway.diagnostics.summary_state import summary_state_text
from gateway.history.pinned import PinReason

RED: Final = "\x1b[31m"
GREEN: Final = "\x1b[32m"
YELLOW: Final = "\x1b[33m"
BOLD: Final = "\x1b[1m"
PLAIN: Final = "\x1b[0m"

_LONGEST_VALUE: Final = 60
# Of a changed message; the notice below says what was changed in a longer one.
_MOST_LINES: Final = 8

# One line for each of these notices would fill the page for a long history.
_QUIET: Final = frozenset({"seen", "ignored"})


def explain_text(
    explanation: Explanation,
    messages: Sequence[Json],
    *,
    paths: FieldPaths = CANONICAL_PATHS,
    width: int = 100,
    colour: bool = False,
) -> str:
    """Returns the page. `messages` are the client's own, `paths` those of its dialect; `width` is that of the
    terminal, in columns."""
    backend = f", backend {explanation.backend}" if explanation.backend else ""
    lines = [_paint(f"model {explanation.model}{backend}", BOLD, colour)]
    if explanation.state is not None and explanation.state.summary is not None:
        lines.append(f"history: {summary_state_text(explanation.state.summary)}")
    if explanation.cache is not None:
        lines.append(f"prompt cache: {explanation.cache.sentence}")
    if explanation.candidates is not None:
        lines += ["", *map(visible, _candidates(explanation.candidates))]
    lines += _violations(explanation, colour)
    lines += _sides(explanation, messages, max(width, 40), colour)
    lines += _changes(explanation, paths, colour)
    lines += _directives(explanation, paths, colour)
    lines += _pinned(explanation, paths, colour)
    lines += _sent(explanation, colour) if explanation.error is None else _refused(explanation.refusal or "", colour)
    return "\n".join(lines) + "\n"


def _candidates(candidates: Sequence[ExplainedCandidate]) -> Iterator[str]:
    """Yields the lines of a table, in the order in which the models would be asked."""
    rows = [("model", "backend", "losses", "of")]
    for one in candidates:
        words = ", ".join((*(["the window"] if one.over_window else ()), *one.broken)) or "-"
        cannot = f"cannot answer: {one.refusal}" if one.refusal else words
        rows.append((one.model, one.backend, "-" if one.losses is None else str(one.losses), cannot))
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    for *cells, last in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)), last])


def _sent(explanation: Explanation, colour: bool) -> Iterator[str]:
    """Yields the text that is sent, or the messages, one a line."""
    size = "" if explanation.encoded is None else f"{explanation.encoded.bytes} bytes, "
    yield from ("", _paint("sent", BOLD, colour) + f": {size}about {explanation.token_estimate} tokens", "")
    flat = len(explanation.wire) == 1 and explanation.wire[0].get("content") == explanation.text
    messages = (msgspec.json.encode(message).decode() for message in explanation.wire)
    lines = explanation.text.split("\n") if flat else list(messages)
    yield from (f"  {visible(line)}" for line in lines)
    if explanation.encoded is not None and explanation.encoded.schema is not None:
        yield from ("", *fields_text(explanation.encoded, explanation.encoded.schema, colour))


def fields_text(encoded: Encoded, schema: SchemaFacts, colour: bool) -> Iterator[str]:
    """Yields the fields of a protobuf message, one a line, each with the place in settings.json that made it."""
    yield from (_paint("fields", BOLD, colour) + f": schema {schema.source}, sha256 {schema.sha256}", "")
    width = max((len(one.field) for one in encoded.fields), default=0)
    places = max((len(one.place) for one in encoded.fields), default=0)
    for one in encoded.fields:
        value = _cut(visible(msgspec.json.encode(one.value).decode()), _LONGEST_VALUE)
        yield f"  {one.field:<{width}} <- {one.place:<{places}} {value}"
    yield from (f"  {name}: the request has no place for it" for name in encoded.unsent)


def _refused(message: str, colour: bool) -> Iterator[str]:
    yield from ("", _paint("refused, nothing would be sent", RED, colour), f"  {visible(message)}")


def _violations(explanation: Explanation, colour: bool) -> Iterator[str]:
    count = len(explanation.violations)
    yield f"{count or 'no'} violation{'' if count == 1 else 's'}"
    for found in explanation.violations:
        yield f"  {found.param} {_paint(found.rule, RED, colour)}: {visible(found.detail)}"
        yield f"    {found.advice}"


def _changes(explanation: Explanation, paths: FieldPaths, colour: bool) -> Iterator[str]:
    changes = [notice for notice in explanation.diagnostics if notice.action not in _QUIET or broken(notice)]
    if changes:
        yield ""
        yield _paint("changes", BOLD, colour)
    for notice in changes:
        place = "" if notice.index is None else f" {paths.turn.format(turn=notice.index)}"
        lost = "".join([f" (loses {word})" for word in broken(notice)])
        yield f"  {notice.stage}{place} {_paint(notice.rule, YELLOW, colour)}: {visible(notice.detail)}{lost}"


def _directives(explanation: Explanation, paths: FieldPaths, colour: bool) -> Iterator[str]:
    """Yields what messages change for the answers after them."""
    if explanation.directives:
        yield from ("", _paint("directives", BOLD, colour))
    for one in explanation.directives:
        place = paths.turn.format(turn=one.index)
        yield f"  {place} {visible(one.directive)}: {'in force' if one.in_force else 'not in force'}"


_REASONS: Final[Mapping[PinReason, str]] = {
    "before_first_answer": "before the first answer",
    "opened_loop": "opened the running loop",
    "newest": "the newest user message",
}


def _pinned(explanation: Explanation, paths: FieldPaths, colour: bool) -> Iterator[str]:
    """Yields the pinned messages where limits have removed others or are exceeded."""
    if not any(notice.stage == "trim" for notice in explanation.diagnostics):
        return
    yield from ("", _paint("pinned", BOLD, colour))
    for one in explanation.pinned:
        place = "a message of the gateway" if one.index is None else paths.turn.format(turn=one.index)
        yield f"  {place}: {_REASONS[one.reason]}"


def _sides(explanation: Explanation, messages: Sequence[Json], width: int, colour: bool) -> Iterator[str]:
    if explanation.error is not None:
        return
    column = (width - 3) // 2
    yield ""
    yield _paint(f"{'before':<{column}} | after", BOLD, colour)
    for left, right, same in _rows(explanation, messages):
        for before, after in _beside(left, right, column, whole=not same and bool(left and right)):
            line = f"{before:<{column}} | {after}"
            yield line if same else _paint(line, GREEN if right else RED, colour)


def _beside(left: str, right: str, column: int, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Yields the lines of a row: one, with its ends cut off, or as many as show what was changed."""
    if not whole:
        yield _cut(left, column), _cut(right, column)
        return
    sides = ([_cut(line, column) for line in textwrap.wrap(side, column)] for side in (left, right))
    yield from islice(zip_longest(*sides, fillvalue=""), _MOST_LINES)


def _rows(explanation: Explanation, messages: Sequence[Json]) -> Iterator[tuple[str, str, bool]]:
    """Yields the client's messages beside those within the limits, in the order of the latter.

    A removed message stands alone at its former position.
    """
    kept = set(explanation.indexes.trimmed)
    passed = 0
    for place, message in zip(explanation.indexes.trimmed, explanation.trimmed, strict=True):
        if place is None or place >= len(messages):
            yield "", f"[+] {_summary(message)}", False
            continue
        yield from _left_out(messages, range(passed, place), kept)
        passed = max(passed, place)
        same = messages[place] == message
        yield f"[{place}] {_summary(messages[place])}", f"[{place}] {_summary(message, messages[place])}", same
    yield from _left_out(messages, range(passed, len(messages)), kept)


def _left_out(messages: Sequence[Json], places: range, kept: set[int | None]) -> Iterator[tuple[str, str, bool]]:
    for place in places:
        if place not in kept:
            yield f"[{place}] {_summary(messages[place])}", "", False


def _summary(message: "Json | JsonObject", before: Json = None) -> str:
    return visible(message_words(message, before))


def visible(text: str) -> str:
    """Returns one line without terminal control characters."""
    return "".join(char if char.isprintable() else " " for char in text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _paint(text: str, paint: str, colour: bool) -> str:
    return f"{paint}{text}{PLAIN}" if colour else text
