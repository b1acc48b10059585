"""Writes a summary as the text that a model reads instead of the covered turns.

Each statement takes one line, and the words of others stand as JSON strings, so that no content can end the summary or
pass for another part of it. The text depends on nothing but its arguments: the same bytes from every worker.
"""

from collections.abc import Iterator
from typing import Final

from gateway.history.compress.summary_content import Item, Kind, Known, SummaryContent
from gateway.history.transcript.styles import one_line

OPENING: Final = (
    "[The first {turns} turns of this conversation are left out here; this summary of them stands instead.]"
)
CLOSING: Final = "[End of the summary; the conversation goes on.]"

_HEADINGS: Final[dict[Kind, str]] = {
    "goal": "Goal:",
    "constraints": "Constraints:",
    "decisions": "Decisions:",
    "facts": "Facts:",
    "files": "Files:",
    "tools": "Done with tools:",
    "errors": "Errors:",
    "open": "Open:",
    "unsure": "Unsure:",
}
_REPORTED: Final = "Reported by tools, not said by anybody in the conversation:"
_NOTES: Final = "Unconfirmed notes, which cite no turn:"
_WORDS: Final = "Said in these turns, verbatim"
_CALLS: Final = "Calls in these turns"
_ERRORS: Final = "Errors that tools returned in these turns, verbatim"


def summary_text(turns: int, content: SummaryContent, known: Known) -> str:
    """Returns the text of a summary of this many turns."""
    return "\n".join((OPENING.format(turns=turns), *_parts(content, known), CLOSING))


def _parts(content: SummaryContent, known: Known) -> Iterator[str]:
    for kind, heading in _HEADINGS.items():
        yield from _section(heading, [item for item in content.items if item.kind == kind and not item.reported])
    yield from _section(_REPORTED, [item for item in content.items if item.reported])
    if content.notes:
        yield _NOTES
        yield one_line(content.notes)
    if known.words:
        yield _heading(_WORDS, known.words_left_out, "others")
        yield from (f"- turn {words.turn}, {words.speaker}: {one_line(words.text)}" for words in known.words)
    if known.calls:
        yield _heading(_CALLS, known.calls_left_out)
        for call in known.calls:
            outcome = "error" if call.is_error else "ok"
            size = f"{call.characters} characters"
            yield f"- turn {call.turn}: {_printed(call.name)} {_printed(call.arguments)}, {outcome}, {size}"
    if known.errors:
        yield _heading(_ERRORS, known.errors_left_out)
        yield from (f"- turn {error.turn}: {one_line(error.text)}" for error in known.errors)


def _printed(text: str) -> str:
    return text if text.isprintable() else one_line(text)


def _section(heading: str, items: list[Item]) -> Iterator[str]:
    if items:
        yield heading
        yield from (f"- {item.text} ({_cited(item.turns)})" for item in items)


def _cited(turns: tuple[int, ...]) -> str:
    return f"{'turn' if len(turns) == 1 else 'turns'} {', '.join(map(str, turns))}"


def _heading(heading: str, left_out: int, which: str = "older ones") -> str:
    return f"{heading} ({left_out} {which} are left out):" if left_out else f"{heading}:"
