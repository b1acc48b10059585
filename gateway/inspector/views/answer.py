"""Shows an answer: what it says in all, and how it came about, by the reads from the backend, their events, and the
chunks that the client got."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never

import msgspec

from gateway.core.answer import AnswerCall, AnswerPart, AnswerReasoning, AnswerText, read_answer
from gateway.core.events import Event, PassthroughFields, ReasoningEnd
from gateway.inspector.views.page import Span, paged
from gateway.inspector.views.remade import Remade
from gateway.recording.lines import BytesLine
from gateway.recording.offline_answer import NO_READ
from gateway.recording.recording import Interaction

_MOST_TEXT: Final = 64 * 2**10
_MOST_HEX: Final = 8 * 2**10
_MOST_PARTS: Final = 200

PartKind: TypeAlias = Literal["text", "thinking", "call"]


class PartView(msgspec.Struct, frozen=True):
    """A part of an answer: text, thinking, or a call with its `id`, its `name`, and its arguments as JSON text. `cut`:
    not all of `text` is shown."""

    kind: PartKind
    text: str
    id: str = ""
    name: str = ""
    cut: bool = False


class AssembledAnswer(msgspec.Struct, frozen=True):
    """What the events of an answer add up to (`gateway.core.answer`). `finish` is the reason of its end; null: it did
    not end. `total` counts its parts, the first 200 of which are here."""

    parts: tuple[PartView, ...]
    finish: str | None
    total: int


class ReadView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One read from the backend: `t` and `gap` are the milliseconds since the head of the request and since the read
    before; `text`, or `hex` of bytes that are no text. `cut`: not all of it is shown."""

    number: int
    t: float
    gap: float
    bytes: int
    cut: bool
    text: str | None = None
    hex: str | None = None


class EventView(msgspec.Struct, frozen=True):
    """An event and the read that it came in; -1: the end of the body. (Any: JSON.)"""

    number: int
    read: int
    event: str
    fields: dict[str, Any]


class ChunkView(msgspec.Struct, frozen=True):
    """A write to the client, and the read that it came of; -1: none, but the beginning or the end."""

    number: int
    read: int
    text: str


class AnswerEnd(msgspec.Struct, frozen=True):
    """How the answer ended. `cut` says what broke it (null: nothing, or it was complete by then), `came` how much came,
    and `expected` what did not."""

    status: int
    code: str
    cut: str | None
    came: str
    expected: str


class AnswerView(msgspec.Struct, frozen=True, rename={"start": "from", "stop": "to"}):
    """The reads of some positions, with what became of them; the last page has what belongs to no read. `missing` are
    the bytes of the backend that were not kept, and `assembled` is the whole answer."""

    total: int
    missing: int
    start: int
    stop: int
    reads: Sequence[ReadView]
    events: Sequence[EventView]
    chunks: Sequence[ChunkView]
    end: AnswerEnd
    assembled: AssembledAnswer


class Said(msgspec.Struct, frozen=True):
    """What one part says, in pieces, to which more may be added while it is not whole."""

    kind: PartKind
    texts: list[str]
    id: str = ""
    name: str = ""


class _Part(msgspec.Struct, frozen=True):
    """A read with its events and chunks."""

    read: ReadView | None
    events: list[EventView]
    chunks: list[ChunkView]


def answer_view(remade: Remade, span: Span) -> AnswerView:
    """Returns one page of an answer."""
    parts = {NO_READ: _Part(None, [], [])}
    parts |= {read.number: _Part(read, [], []) for read in _reads(remade.interaction)}
    for event in _events(remade):
        parts[event.read].events.append(event)
    for chunk in _chunks(remade):
        parts[chunk.read].chunks.append(chunk)
    outside = parts.pop(NO_READ)
    start, stop, found = paged([*parts.values()], span)
    if stop == len(parts):
        found = [*found, outside]
    return AnswerView(
        len(parts),
        sum(gap.bytes for gap in remade.interaction.gaps if gap.side == "backend"),
        start,
        stop,
        [part.read for part in found if part.read is not None],
        [event for part in found for event in part.events],
        [chunk for part in found for chunk in part.chunks],
        answer_end(remade),
        assembled_answer(remade),
    )


def assembled_answer(remade: Remade) -> AssembledAnswer:
    """Returns what the events of an answer add up to so far."""
    answer = read_answer(_flat(remade))
    parts: list[Said] = []
    for said in filter(None, map(said_by, answer.parts)):
        # What a backend passes on beside its text interrupts it for the client's events, but for nobody who reads.
        if parts and said.kind == parts[-1].kind != "call":
            parts[-1].texts.extend(said.texts)
        else:
            parts.append(msgspec.structs.replace(said, texts=[*said.texts]))
    reason = None if answer.finish is None else answer.finish.reason
    return AssembledAnswer(tuple(_part_view(one) for one in parts[:_MOST_PARTS]), reason, len(parts))


def said_by(part: AnswerPart) -> Said | None:
    """Returns what a part says; None where that is nothing a person reads."""
    match part:
        case AnswerText():
            return Said("text", part.pieces)
        case AnswerReasoning():
            return Said("thinking", part.pieces)
        case AnswerCall():
            return Said("call", part.pieces, part.start.id, part.start.name)
        case PassthroughFields():
            return Said("call", [msgspec.json.encode(part.fields).decode()], name=part.call) if part.call else None
        case ReasoningEnd():
            return None
        case _:
            assert_never(part)


def _part_view(said: Said) -> PartView:
    text = "".join(said.texts)
    return PartView(said.kind, text[:_MOST_TEXT], said.id, said.name, len(text) > _MOST_TEXT)


def _reads(interaction: Interaction) -> Iterator[ReadView]:
    head = interaction.head
    before = 0.0 if head is None else head.t
    for number, read in enumerate(interaction.reads):
        data = read.data.content
        gap, before = round(read.t - before, 3), read.t
        if read.data.text is not None:
            yield ReadView(
                number, read.t, gap, len(data), len(read.data.text) > _MOST_TEXT, text=read.data.text[:_MOST_TEXT]
            )
        else:
            yield ReadView(number, read.t, gap, len(data), len(data) > _MOST_HEX, hex=data[:_MOST_HEX].hex(" "))


def _events(remade: Remade) -> Iterator[EventView]:
    if remade.run is None:
        return
    number = 0
    for read, events in zip(remade.run.event_reads, remade.run.events, strict=True):
        for event in events:
            yield EventView(number, read, type(event).__name__, msgspec.to_builtins(event))
            number += 1


def _chunks(remade: Remade) -> Iterator[ChunkView]:
    run = remade.run
    if run is not None and run.writes and not remade.interaction.gaps:
        for number, (read, data) in enumerate(zip(run.write_reads, run.writes, strict=True)):
            yield ChunkView(number, read, data.decode("utf-8", "replace"))
        return
    read, number = NO_READ, 0
    for step in remade.interaction.steps:
        if isinstance(step, BytesLine) and step.side == "backend":
            read += 1
        elif isinstance(step, BytesLine):
            yield ChunkView(number, read, step.data.content.decode("utf-8", "replace"))
            number += 1


def answer_end(remade: Remade) -> AnswerEnd:
    """Returns how an answer ended."""
    end = remade.interaction.end
    if end is None:
        return AnswerEnd(0, "", None, _came(remade), "")
    if not end.code:
        return AnswerEnd(end.status, "", None, _came(remade), "")
    return AnswerEnd(end.status, end.code, end.cut, _came(remade), _expected(remade))


def passed_bytes(remade: Remade) -> int:
    """Returns the size of an answer that was passed on as it came."""
    return sum(gap.bytes for gap in remade.interaction.gaps if gap.side == "client")


def _came(remade: Remade) -> str:
    interaction = remade.interaction
    if interaction.passed:
        size = passed_bytes(remade)
        return f"{size} bytes, which were passed on" if size else "no answer that could be passed on"
    head, reads = interaction.head, interaction.reads
    if head is None:
        return "no response of the backend" if interaction.sent is not None else "nothing: no request was sent"
    events = _flat(remade)
    size = sum(len(read.data.content) for read in reads) + sum(gap.bytes for gap in interaction.gaps)
    last = f", the last of them {type(events[-1]).__name__}" if events else ""
    parts = f"reads: {len(reads)}, events: {len(events)}{last}"
    return f"a response with the status {head.status}, {size} bytes ({parts})"


def _expected(remade: Remade) -> str:
    """Returns the missing end of a broken response, in words; empty where it was complete, or none was expected."""
    interaction = remade.interaction
    if interaction.sent is None:
        return ""
    if interaction.head is None:
        return "the head of a response"
    if interaction.head.status != 200:
        return "a response with the status 200"
    if any(type(event).__name__ == "Finish" for event in _flat(remade)):
        return ""
    return "the event Finish, which says why the model stopped, and then the end of the body"


def _flat(remade: Remade) -> list[Event]:
    return [] if remade.run is None else [event for events in remade.run.events for event in events]
