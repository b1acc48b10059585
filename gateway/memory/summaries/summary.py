"""Defines a summary: its content, the text that a model reads instead of the covered turns, and the stored record.

The content is items of prose that cite turns, and what the gateway knows without a model. In the text each statement
takes one line, and the words of others stand as JSON strings, so that no content can end the summary or pass for
another part of it; it depends on nothing but its arguments. A record is written once, read by every worker, and has the
same bytes for the same values.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.history.transcript.styles import one_line

# The longest item, in characters.
MAX_ITEM: Final = 400

# What the model may write, in the order in which it is shown.
Kind: TypeAlias = Literal["goal", "constraints", "decisions", "facts", "files", "tools", "errors", "open", "unsure"]


class Item(msgspec.Struct, frozen=True):
    """One statement. `turns` are the numbers of the turns that it is drawn from: 1 is the first behind the system
    prefix.

    `reported`: only tools said it, and no user asked for it or decided it.
    """

    kind: Kind
    text: str
    turns: tuple[int, ...]
    reported: bool = False


class SummaryContent(msgspec.Struct, frozen=True):
    """What the model wrote, checked and filed. `notes` is an answer in plain text, which cites nothing.

    `dropped` counts the items that were left out because they broke a rule.
    """

    items: tuple[Item, ...] = ()
    notes: str = ""
    dropped: int = 0


class Words(msgspec.Struct, frozen=True):
    """What the user, or a later system message, said in one covered turn, verbatim."""

    turn: int
    speaker: Literal["user", "system"]
    text: str


class CallEntry(msgspec.Struct, frozen=True):
    """One covered call: its name, its arguments (shortened), whether its result is an error, and the result's size."""

    turn: int
    name: str
    arguments: str
    is_error: bool
    characters: int


class ErrorLine(msgspec.Struct, frozen=True):
    """The line of a result about an error, shortened."""

    turn: int
    text: str


class Known(msgspec.Struct, frozen=True):
    """What the gateway knows of the covered turns without a model.

    `words` are those before the model's first turn and the newest others that have room, in the order of the turns;
    `calls` and `errors` the newest ones.
    `words_left_out` and so on count the others.
    """

    words: tuple[Words, ...] = ()
    calls: tuple[CallEntry, ...] = ()
    words_left_out: int = 0
    calls_left_out: int = 0
    errors: tuple[ErrorLine, ...] = ()
    errors_left_out: int = 0


def without_oldest(known: Known) -> Known:
    """Returns what is known with half as many words, calls and errors; the oldest ones are left out."""
    words, calls, errors = (len(one) - len(one) // 2 for one in (known.words, known.calls, known.errors))
    return Known(
        words=known.words[words:],
        calls=known.calls[calls:],
        words_left_out=known.words_left_out + words,
        calls_left_out=known.calls_left_out + calls,
        errors=known.errors[errors:],
        errors_left_out=known.errors_left_out + errors,
    )


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


def summary_text(turns: int, content: SummaryContent, known: Known, said: Sequence[str] = ()) -> str:
    """Returns the text of a summary of this many turns. `said` are lines of the gateway about all of them."""
    return "\n".join((OPENING.format(turns=turns), *said, *_parts(content, known), CLOSING))


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


FORM: Final = 1


class RecordUnreadable(ValueError):
    """The bytes are no record of this form."""


class Producer(msgspec.Struct, frozen=True):
    """Who wrote a summary: the route, the backend and the model, and the id of the request that started the job."""

    route: str
    backend: str
    model: str
    request_id: str


class Cost(msgspec.Struct, frozen=True):
    """What a summary cost and saved.

    `tokens_in` and `tokens_out` are the job's own (`estimated`: the backend reported none); `covered_tokens` is the
    estimate of the turns that it replaces, `summary_tokens` that of the text instead of them.
    """

    tokens_in: int
    tokens_out: int
    estimated: bool
    milliseconds: int
    covered_tokens: int
    summary_tokens: int


class SummaryRecord(msgspec.Struct, frozen=True):
    """The summary of the turns that `digest` stands for. Never changed under one tenant, digest and prompt version.

    `turns` counts the covered turns behind the system prefix. `generation` is 1 for a summary of the turns themselves,
    and grows by one with each that continues another, whose digest is `parent`. `created` is in seconds since 1970.
    `text` is what the model reads instead of the turns.
    """

    tenant: str
    digest: bytes
    turns: int
    root: bytes
    generation: int
    parent: bytes | None
    prompt_version: int
    created: float
    producer: Producer
    cost: Cost
    content: SummaryContent
    known: Known
    text: str
    form: int = FORM

    def encode(self) -> bytes:
        """Returns the record as MessagePack."""
        return msgspec.msgpack.encode(self)


def decode_record(data: bytes) -> SummaryRecord:
    """Returns the record in these bytes. Raises RecordUnreadable for anything else, a record of another form too."""
    try:
        record = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordUnreadable(str(error)) from error
    if record.form != FORM:
        raise RecordUnreadable(f"form {record.form} of a record")
    return record


_DECODER: Final = msgspec.msgpack.Decoder(SummaryRecord)
