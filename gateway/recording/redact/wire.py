"""Redacts the bytes of one side of a recording where they stand: every length stays, and so does every frame.

The wire is recognised by its bytes: one JSON text, server-sent events, JSON lines, protobuf messages in frames of gRPC,
in base64 or alone, else plain text. Pieces of one text that come in many events are redacted as one text.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import AnyStr, Final, TypeAlias, assert_never

from gateway.core.escapes import JSON, PERCENT
from gateway.core.secrets import placeholder, without_secrets
from gateway.recording.redact.json_strings import JsonReader
from gateway.recording.redact.places import Place, Treatment
from gateway.recording.redact.protobuf import Part, find_parts, find_texts
from gateway.recording.redact.text_body import TextBody, packed
from gateway.recording.redact.words import Words, is_identifier

# A word of a protocol, such as `max_output_tokens`.
_WORD: Final = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)*")
# The shapes of ids that clients, providers and the gateway choose.
_ID: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:call|toolu|srvtoolu|fc|rs|msg|resp|req|item|chatcmpl|cmpl|gen)[_-](?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{1,64}"
)
# The flag of an envelope that holds trailers (gRPC-Web).
_TRAILERS: Final = 0x80
# Where a piece of a text begins and ends.
Piece: TypeAlias = tuple[int, int]


class Redactor:
    """Redacts the bytes of one recording. `configured` are the secrets that the settings and the client use. `removed`
    counts the texts that had secrets. `ids`: those of the protocols stay, which name requests, calls and items."""

    def __init__(
        self, words: Words, configured: Sequence[str] = (), kept: Iterable[str] = (), ids: bool = False
    ) -> None:
        self._words = words
        self.configured = tuple(configured)
        self._kept = frozenset(kept)
        self._ids = ids
        self._reader = JsonReader()
        # The same text comes again in many events, and in what the gateway makes of it.
        self._without_secrets: dict[str, str] = {}
        self._replaced: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self.removed = 0

    def secrets_only(self) -> "Redactor":
        """Returns one that leaves words as they are, and has no second look at the texts that this one has returned."""
        other = Redactor(Words("none", b""), self.configured)
        other._without_secrets = {new: new for new in self._replaced.values()}
        return other

    @property
    def texts(self) -> list[str]:
        """The texts that were replaced, as they were."""
        return [text for text, new in self._replaced.items() if new != text]

    def text(self, text: str) -> str:
        """Returns one text of the same length."""
        return self._words_of(self.secrets(text))

    def id(self, text: str) -> str:
        """Returns an id that a client or a backend has chosen."""
        return self.secrets(text) if self._ids and is_identifier(text) else self.text(text)

    def secrets(self, text: str) -> str:
        """Returns a text without its secrets, and otherwise as it is."""
        clean = self._without_secrets.get(text)
        if clean is None:
            clean = self._without_secrets[text] = without_secrets(text, self.configured)
        self.removed += clean != text
        return clean

    def data(self, data: bytes, media: str = "") -> bytes:
        """Returns the bytes of a whole body of this media type, or of all reads of a response."""
        parts = find_parts(data, media)
        return self._body(data) if parts is None else self._parts(data, parts)

    def field(self, name: str, value: str) -> str:
        """Returns the value of a header or trailer. Of an error of gRPC, the words are percent-encoded, and the details
        are a protobuf message in base64 (gRPC over HTTP2)."""
        if name == "grpc-status-details-bin":
            return self.data(value.encode()).decode()
        if name == "grpc-message":
            return PERCENT.written(value, self.text(PERCENT.decoded(value)))
        return self.secrets(value)

    def _body(self, data: bytes) -> bytes:
        """Redacts a body of text, which may have broken characters."""
        return self._text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _parts(self, data: bytes, parts: Sequence[Part]) -> bytes:
        """Redacts messages, trailers and whatever else stands in the parts of a body."""
        cut = parts[-1] if parts and parts[-1].stop == len(data) else None
        messages: list[Piece] = []
        changed = bytearray(data)
        for part in parts:
            content = data[part.start : part.stop]
            if part.flags & _TRAILERS:
                changed[part.start : part.stop] = self._trailers(content)
            elif part.flags or find_texts(content, part is cut) is None:
                changed[part.start : part.stop] = self._body(content)
            else:
                messages.append((part.start, part.stop))
        return self._protobuf(bytes(changed), messages, cut is not None)

    def _trailers(self, lines: bytes) -> bytes:
        """Redacts the trailers of gRPC-Web, which stand in the body."""
        fields = [line.partition(":") for line in lines.decode("utf-8", "surrogateescape").split("\r\n")]
        clean = [name + mark + self.field(name.strip().lower(), value) for name, mark, value in fields]
        return "\r\n".join(clean).encode("utf-8", "surrogateescape")

    def _text(self, text: str) -> str:
        """Redacts a body of text: JSON, lines of JSON or of base64, or prose."""
        body = TextBody(text, self._reader)
        pieces = body.pieces
        for number, spans in body.numbers.items():
            pieces[number] = self._numbers(pieces[number], spans)
        for (place, _, _), numbers in body.strings.items():
            sources = [pieces[number][1:-1] for number in numbers]
            for number, new in zip(numbers, self._strings(place, sources), strict=True):
                pieces[number] = f'"{new}"'
        for number in body.names:
            pieces[number] = self._name(pieces[number])
        self._packed(pieces, body.packed)
        prose = [pieces[number] for number in body.prose]
        for number, new in zip(body.prose, self._pieces(prose, lambda _: False), strict=True):
            pieces[number] = new
        return "".join(pieces)

    def _numbers(self, between: str, spans: Sequence[Piece]) -> str:
        """Redacts the numbers between two strings."""
        ends = [0, *(stop for _, stop in spans)]
        parts = [
            between[end:start] + self._words.text(between[start:stop])
            for end, (start, stop) in zip(ends, spans, strict=False)
        ]
        return "".join([*parts, between[ends[-1] :]])

    def _name(self, source: str) -> str:
        """Returns the name of a field in its quotes. It stays, but for secrets."""
        new = self._names.get(source)
        if new is None:
            meant = JSON.decoded(source[1:-1])
            clean = self.secrets(meant)
            new = self._names[source] = source if clean == meant else f'"{JSON.written(source[1:-1], clean)}"'
        return new

    def _strings(self, place: Place, sources: list[str]) -> list[str]:
        """Redacts the JSON strings of one place."""
        meant = [JSON.decoded(source) for source in sources]
        is_id = self._ids and place.treatment is Treatment.ID and not place.is_content
        clean = [*map(self.id, meant)] if is_id else self._treated(place.treatment, meant)
        return [
            source if new == was else JSON.written(source, new)
            for source, was, new in zip(sources, meant, clean, strict=True)
        ]

    def _treated(self, treatment: Treatment, meant: list[str]) -> list[str]:
        match treatment:
            case Treatment.SECRET:
                clean = [text if text.startswith("[key:") else placeholder("field", text) for text in meant]
                self.removed += clean != meant
                return clean
            case Treatment.KEPT:
                return [self.secrets(text) for text in meant]
            case Treatment.REASON:
                return [self.secrets(text) if _WORD.fullmatch(text) else self.text(text) for text in meant]
            case Treatment.FILE:
                return [self._words.stub(self.secrets(text)) for text in meant]
            case Treatment.ID:
                return self._pieces(meant, lambda _: True)
            case Treatment.STREAMED:
                return self._pieces(meant, lambda _: False)
            case Treatment.TEXT:
                return self._pieces(meant, is_identifier)
        assert_never(treatment)

    def _packed(self, pieces: list[str], messages: "dict[int, bytes]") -> None:
        """Redacts protobuf messages in base64."""
        ends = [*accumulate(map(len, messages.values()), initial=0)]
        clean = self._protobuf(b"".join(messages.values()), [*pairwise(ends)])
        for number, (start, stop) in zip(messages, pairwise(ends), strict=True):
            pieces[number] = packed(clean[start:stop], pieces[number])

    def _protobuf(self, data: bytes, messages: Iterable[Piece], cut: bool = False) -> bytes:
        """Redacts messages, of which the last may be `cut` off."""
        changed = bytearray(data)
        gathered: dict[tuple[int, ...], list[Piece]] = {}
        for start, stop in messages:
            times: Counter[tuple[int, ...]] = Counter()
            for begin, end, path in find_texts(data[start:stop], cut and stop == len(data)) or ():
                times[path] += 1
                gathered.setdefault((*path, -times[path]), []).append((start + begin, start + end))
        for spans in gathered.values():
            texts = [data[begin:end].decode("utf-8", "surrogateescape") for begin, end in spans]
            clean = self._pieces(texts, is_identifier)
            for (begin, end), was, text in zip(spans, texts, clean, strict=True):
                # No name of a field tells that it is one.
                new = self.id(was) if self._ids and _ID.fullmatch(was) else text
                changed[begin:end] = new.encode("utf-8", "surrogateescape")
        return bytes(changed)

    def _pieces(self, texts: list[str], alone: Callable[[str], bool]) -> list[str]:
        """Redacts the pieces of one text. One that stands `alone` is no part of a word of its neighbours; a secret may
        be cut anywhere."""
        if len(texts) == 1:
            return [self.text(texts[0])]
        clean = cut_like(self.secrets("".join(texts)), texts)
        runs: list[list[str]] = [[]]
        for was, text in zip(texts, clean, strict=True):
            if was == text and alone(text):
                runs += [[text], []]
            else:
                runs[-1].append(text)
        return cut_like("".join(self._words_of("".join(run)) for run in runs), texts)

    def _words_of(self, text: str) -> str:
        if not text or text in self._kept:
            return text
        new = self._replaced.get(text)
        if new is None:
            new = self._replaced[text] = self._words.text(text)
        return new


def cut_like(joined: AnyStr, pieces: Sequence[AnyStr]) -> list[AnyStr]:
    """Cuts a text, or bytes, into pieces as long as these."""
    ends = accumulate(map(len, pieces), initial=0)
    return [joined[start:stop] for start, stop in pairwise(ends)]
