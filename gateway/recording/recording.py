"""Reads and writes recordings, and gathers the lines of each recorded request."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.core.notices import Notice
from gateway.recording.line_format import decode_line, encode_line
from gateway.recording.lines import (
    FORMAT,
    MAX_FILE,
    AnswerLine,
    BytesLine,
    CloseLine,
    EndLine,
    GapLine,
    HeaderLine,
    HeadLine,
    Line,
    NoticeLine,
    RecordingError,
    RequestLine,
    RouteLine,
    SentLine,
    TryLine,
    UnknownLine,
)

# What went over the two wires after the request, in the order in which it happened.
Step: TypeAlias = HeadLine | BytesLine | GapLine | CloseLine


# As `write_recording` writes the first line.
_BEGINNING: Final = b'{"kind":"recording"'


class Round(msgspec.Struct, frozen=True):
    """One response of the backend: its head, the reads of its body, and its end, where that was complete."""

    head: HeadLine
    reads: tuple[BytesLine, ...] = ()
    close: CloseLine | None = None


class Interaction(msgspec.Struct, frozen=True):
    """One recorded request of a client, and all that followed it. `others` are the lines of unknown kinds, and
    `tries` those that failed before this backend was asked."""

    request: RequestLine
    route: RouteLine | None = None
    sent: SentLine | None = None
    answer: AnswerLine | None = None
    steps: tuple[Step, ...] = ()
    notice_lines: tuple[NoticeLine, ...] = ()
    end: EndLine | None = None
    others: tuple[UnknownLine, ...] = ()
    tries: tuple[TryLine, ...] = ()

    @property
    def x(self) -> int:
        """The number in the recording, from 1."""
        return self.request.x

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The notices, in order."""
        return tuple(line.notice for line in self.notice_lines)

    @property
    def body(self) -> bytes | None:
        """The body of the client's request; None: it is not in the recording."""
        return None if self.request.body is None else self.request.body.content

    @property
    def explains(self) -> bool:
        """Whether the client asked for the notices in its answer."""
        return self.request.headers.get("x-dragoman-explain") in ("1", "true")

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The responses of the backend, in order: more than one where it searched for tools."""
        found: list[Round] = []
        for step in self.steps:
            if isinstance(step, HeadLine) and step.side == "backend":
                found.append(Round(step))
            elif isinstance(step, BytesLine) and step.side == "backend" and found:
                found[-1] = msgspec.structs.replace(found[-1], reads=(*found[-1].reads, step))
            elif isinstance(step, CloseLine) and found:
                found[-1] = msgspec.structs.replace(found[-1], close=step)
        return tuple(found)

    @property
    def head(self) -> HeadLine | None:
        """The head of the backend's first response."""
        heads = (step for step in self.steps if isinstance(step, HeadLine) and step.side == "backend")
        return next(heads, None)

    @property
    def passed(self) -> bool:
        """Whether the request went to a backend as it came, so that no line says what was sent."""
        marks = None if self.end is None else self.end.marks
        return marks is not None and self.sent is None and (marks.prepared, marks.connected) != (None, None)

    @property
    def client_head(self) -> HeadLine | None:
        """The head of the client's response."""
        heads = (step for step in self.steps if isinstance(step, HeadLine) and step.side == "client")
        return next(heads, None)

    @property
    def reads(self) -> tuple[BytesLine, ...]:
        """The reads from the backend, of all its responses."""
        return tuple(step for step in self.steps if isinstance(step, BytesLine) and step.side == "backend")

    @property
    def writes(self) -> tuple[BytesLine, ...]:
        """The writes to the client."""
        return tuple(step for step in self.steps if isinstance(step, BytesLine) and step.side == "client")

    @property
    def close(self) -> CloseLine | None:
        """The end of the backend's first body, where it was complete."""
        return next((step for step in self.steps if isinstance(step, CloseLine)), None)

    @property
    def gaps(self) -> tuple[GapLine, ...]:
        """The places where bytes are missing."""
        return tuple(step for step in self.steps if isinstance(step, GapLine))

    def numbered(self, x: int) -> "Interaction":
        """Returns the request under another number."""
        lines = [msgspec.structs.replace(line, x=x) for line in self.lines()]
        return _interaction(lines)

    def lines(self) -> Iterator[Line]:
        """Yields its lines in the order of a file."""
        yield self.request
        yield from (line for line in (self.route, self.sent, self.answer) if line is not None)
        yield from self.tries
        yield from self.notice_lines
        yield from self.steps
        yield from self.others
        if self.end is not None:
            yield self.end


class Recording(msgspec.Struct, frozen=True):
    """The content of one file: the header, and every other line in order."""

    header: HeaderLine = HeaderLine()
    lines: tuple[Line, ...] = ()

    def interactions(self) -> tuple[Interaction, ...]:
        """Returns the recorded requests, in the order of their first lines. Raises RecordingError for a line that
        belongs to none, and for two requests of one number."""
        gathered: dict[int, list[Line]] = {}
        for line in self.lines:
            if isinstance(line, HeaderLine) or (isinstance(line, UnknownLine) and line.x not in gathered):
                continue
            if isinstance(line, RequestLine):
                if line.x in gathered:
                    raise RecordingError(f"Two requests have the number {line.x}.")
                gathered[line.x] = []
            elif line.x not in gathered:
                raise RecordingError(f"A line belongs to the request {line.x}, which does not stand before it.")
            gathered[line.x].append(line)
        return tuple(_interaction(lines) for lines in gathered.values())

    def with_interactions(self, interactions: Iterable[Interaction]) -> "Recording":
        """Returns a recording of these alone, under the same header."""
        return msgspec.structs.replace(self, lines=tuple(line for one in interactions for line in one.lines()))


def _interaction(lines: Sequence[Line]) -> Interaction:
    def last(kind: type[Line]) -> Line | None:
        return next((line for line in reversed(lines) if isinstance(line, kind)), None)

    request = lines[0]
    assert isinstance(request, RequestLine)
    route, sent, answer, end = last(RouteLine), last(SentLine), last(AnswerLine), last(EndLine)
    return Interaction(
        request,
        route if isinstance(route, RouteLine) else None,
        sent if isinstance(sent, SentLine) else None,
        answer if isinstance(answer, AnswerLine) else None,
        tuple(line for line in lines if isinstance(line, HeadLine | BytesLine | GapLine | CloseLine)),
        tuple(line for line in lines if isinstance(line, NoticeLine)),
        end if isinstance(end, EndLine) else None,
        tuple(line for line in lines if isinstance(line, UnknownLine)),
        tuple(line for line in lines if isinstance(line, TryLine)),
    )


def write_recording(recording: Recording) -> bytes:
    """Returns the file. Raises RecordingError for one above the caps."""
    data = b"".join([encode_line(recording.header), *map(encode_line, recording.lines)])
    if len(data) > MAX_FILE:
        raise RecordingError(f"The recording has more than the {MAX_FILE} bytes that the format allows.")
    return data


def read_recording(data: bytes) -> Recording:
    """Reads a file. A last line without its line end, which a killed writer leaves, is dropped. Raises RecordingError,
    which names the line."""
    if len(data) > MAX_FILE:
        raise RecordingError(f"The recording has more than the {MAX_FILE} bytes that the format allows.")
    header: HeaderLine | None = None
    lines: list[Line] = []
    for number, text in enumerate(_whole_lines(data), 1):
        try:
            line = decode_line(text)
        except RecordingError as error:
            raise RecordingError(f"Line {number} of the recording cannot be read: {error.message}.") from error
        if header is None:
            header = _header(line)
        elif isinstance(line, HeaderLine):
            raise RecordingError(f"A second recording begins in line {number}; a file holds one.")
        else:
            lines.append(line)
    return Recording(_header(header), tuple(lines))


def is_recording(data: bytes) -> bool:
    """Returns whether a file begins as a recording does; it may still be none that can be read."""
    return data.startswith(_BEGINNING)


def _whole_lines(data: bytes) -> Iterator[bytes]:
    """Yields the lines that have a line end, one by one: a file of line ends alone would need much memory."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1


def _header(line: Line | None) -> HeaderLine:
    """Returns the first line. Raises RecordingError where it is none that this version reads."""
    if not isinstance(line, HeaderLine):
        raise RecordingError("This is no recording: its first line must have the kind recording.")
    if line.format > FORMAT:
        raise RecordingError(
            f"The recording has format {line.format}; this version reads {FORMAT}. Upgrade dragoman to read it."
        )
    return line
