"""Redacts the bytes of one side of a recording where they stand: every length stays, and so does every frame.

The wire is told by its bytes: one JSON text, server-sent events, JSON lines, protobuf messages in frames of gRPC, in
base64 or alone, else plain text. Pieces of one text that come in many events are redacted as one text.
"""

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, TypeAlias

import msgspec

from gateway.recording.redact.json_strings import Found, JsonStrings, NoJson, decoded, written
from gateway.recording.redact.protobuf import find_texts, grpc_messages
from gateway.recording.redact.secrets import is_secret_field, placeholder, without_secrets
from gateway.recording.redact.words import Words, is_identifier

_KEPT: Final = """
role type model object name tool_name finish_reason stop_reason finishReason native_finish_reason done_reason
status event kind code format encoding_format mode mime_type mimeType media_type detail service_tier
system_fingerprint reasoning_effort effort tool_choice truncation required pattern $ref language created_at
modelVersion responseId profile level quantization
"""
# Fields of the protocols whose values are words of the protocol, or names.
_KEPT_FIELDS: Final = frozenset(_KEPT.split())
# The values of these are files in base64, or texts.
_FILES: Final = frozenset(("images", "data"))
# Below these fields stands what the client and its tools say, in fields of their own.
_CONTENT: Final = frozenset(("arguments", "args", "metadata"))
_RESPONSES: Final = frozenset((("functionResponse", "response"), ("function_response", "response")))
_PLACES: Final = ("index", "output_index", "content_index", "item_id", "type")
_SHORTEST_PACKED: Final = 4
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_STANDARD: Final = str.maketrans("-_", "+/")
_LINE: Final = re.compile(r"^(data: ?|event: ?|id: ?|retry: ?|: ?)?(.*?)(\r?)$", re.DOTALL)

# Where a piece of a text begins and ends.
Piece: TypeAlias = tuple[int, int]


class _Place(NamedTuple):
    """What tells a value from all others but the pieces of the same text: its path, and what its object says about its
    place; `nth` of those in one JSON text."""

    path: tuple[str, ...]
    said: tuple[str, ...]
    nth: int = 1

    @property
    def field(self) -> str:
        return next((name for name in reversed(self.path) if name != "[]"), "")

    @property
    def is_content(self) -> bool:
        """Whether it is what the client or its tools say, in an object of theirs."""
        above = self.path[:-1]
        if "properties" in above:
            return False
        within = not _CONTENT.isdisjoint(above) or "input" in above[1:]
        return within or not _RESPONSES.isdisjoint(pairwise(above))


class Redactor:
    """Redacts the bytes of one recording. `configured` are the secrets that the settings and the client use. `removed`
    counts the secrets that were found; `texts` are the texts that were replaced, as they were."""

    def __init__(self, words: Words, configured: Sequence[str] = (), kept: Iterable[str] = ()) -> None:
        self._words = words
        self.configured = tuple(configured)
        self._kept = frozenset(kept)
        self.removed = 0
        self.texts: dict[str, None] = {}

    def text(self, text: str) -> str:
        """Returns one text of the same length."""
        return self._joined([text], [False])

    def secrets(self, text: str) -> str:
        """Returns a text without its secrets, and otherwise as it is."""
        clean = without_secrets(text, self.configured)
        self.removed += clean != text
        return clean

    def data(self, data: bytes) -> bytes:
        """Returns the bytes of a whole body, or of all reads of a response."""
        messages = grpc_messages(data)
        if messages is not None:
            return self._protobuf(data, messages)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            if find_texts(data) is not None:
                return self._protobuf(data, [(0, len(data))])
            text = data.decode("utf-8", "surrogateescape")
        return self._text(text).encode("utf-8", "surrogateescape")

    def _text(self, text: str) -> str:
        """Redacts a body of text: JSON, lines of JSON or of base64, or prose."""
        documents = _documents(text)
        changed = list(text)
        if not documents:
            changed[:] = self.text(text)
        self._json(text, changed, [one for one in documents if isinstance(one.content, JsonStrings)])
        self._packed(changed, [one for one in documents if isinstance(one.content, bytes)])
        prose = [one for one in documents if one.content is None]
        lines = [text[one.start : one.stop] for one in prose]
        for one, line in zip(prose, self._pieces(lines, [False] * len(lines)), strict=True):
            changed[one.start : one.stop] = line
        return "".join(changed)

    def _json(self, text: str, changed: list[str], documents: Sequence["_Document"]) -> None:
        """Redacts the values of JSON texts. The same place in several of them holds the pieces of one text."""
        gathered: dict[_Place, list[Piece]] = {}
        for document in documents:
            strings = document.content
            assert isinstance(strings, JsonStrings)
            times: Counter[_Place] = Counter()
            for value in strings.found:
                place = _place(value, strings.scalars)
                times[place] += 1
                span = (document.start + value.start, document.start + value.stop)
                if value.kind == "string":
                    gathered.setdefault(place._replace(nth=times[place]), []).append(span)
                elif place.is_content and span[1] > span[0] + 1:
                    changed[span[0] : span[1]] = self._words.text(text[span[0] : span[1]])
        for place, spans in gathered.items():
            sources = [text[start:stop] for start, stop in spans]
            for (start, stop), new in zip(spans, self._sources(place, sources), strict=True):
                changed[start:stop] = new

    def _packed(self, changed: list[str], documents: Sequence["_Document"]) -> None:
        """Redacts protobuf messages in base64."""
        contents = [one.content for one in documents if isinstance(one.content, bytes)]
        ends = [*accumulate(map(len, contents), initial=0)]
        clean = self._protobuf(b"".join(contents), [*pairwise(ends)])
        for one, (start, stop) in zip(documents, pairwise(ends), strict=True):
            source = "".join(changed[one.start : one.stop])
            changed[one.start : one.stop] = _encoded(clean[start:stop], source)

    def _protobuf(self, data: bytes, messages: Iterable[Piece]) -> bytes:
        changed = bytearray(data)
        gathered: dict[tuple[int, ...], list[Piece]] = {}
        for start, stop in messages:
            times: Counter[tuple[int, ...]] = Counter()
            for begin, end, path in find_texts(data[start:stop]) or ():
                times[path] += 1
                gathered.setdefault((*path, -times[path]), []).append((start + begin, start + end))
        for spans in gathered.values():
            texts = [data[begin:end].decode() for begin, end in spans]
            clean = self._pieces(texts, [is_identifier(text) for text in texts])
            for (begin, end), text in zip(spans, clean, strict=True):
                changed[begin:end] = text.encode()
        return bytes(changed)

    def _sources(self, place: _Place, sources: list[str]) -> list[str]:
        meant = [decoded(source) for source in sources]
        field = place.field
        if is_secret_field(field):
            self.removed += 1
            clean = [text if text.startswith("[key:") else placeholder("field", text) for text in meant]
        elif field in _KEPT_FIELDS and not place.is_content:
            clean = [self.secrets(text) for text in meant]
        elif field in _FILES and not place.is_content:
            clean = [self._words.stub(self.secrets(text)) for text in meant]
        else:
            ids = field.lower().endswith("id")
            clean = self._pieces(meant, [ids or is_identifier(text) for text in meant])
        return [written(source, new) for source, new in zip(sources, clean, strict=True)]

    def _pieces(self, texts: list[str], alone: list[bool]) -> list[str]:
        """Redacts the pieces of one text."""
        return _cut(self._joined(texts, alone), texts)

    def _joined(self, texts: list[str], alone: list[bool]) -> str:
        """Redacts pieces that follow each other. A piece that stands `alone` is no part of a word of its neighbours; a
        secret may be cut anywhere."""
        clean = _cut(self.secrets("".join(texts)), texts)
        runs: list[list[str]] = [[]]
        for was, text, apart in zip(texts, clean, alone, strict=True):
            if apart and was == text:
                runs += [[text], []]
            else:
                runs[-1].append(text)
        return "".join(self._replaced("".join(run)) for run in runs)

    def _replaced(self, text: str) -> str:
        if not text or text in self._kept:
            return text
        new = self._words.text(text)
        if new != text:
            self.texts.setdefault(text)
        return new


class _Document(msgspec.Struct, frozen=True):
    """A part of a body: JSON, the bytes of a protobuf message in base64, or (None) prose."""

    start: int
    stop: int
    content: JsonStrings | bytes | None


def _documents(text: str) -> list[_Document]:
    """Returns the parts of a body; none for one that is prose as a whole."""
    if (whole := _json_strings(text)) is not None:
        return [_Document(0, len(text), whole)]
    found: list[_Document] = []
    marked = False
    at = 0
    for line in text.split("\n"):
        match = _LINE.match(line)
        assert match is not None  # every part of it may be empty
        field = (match[1] or "").rstrip()
        if field not in ("event:", "retry:") and match[2] not in ("", "[DONE]"):
            strings = _json_strings(match[2])
            content = _unpacked(match[2]) if strings is None else strings
            found.append(_Document(at + match.start(2), at + match.end(2), content))
        marked = marked or bool(field)
        at += len(line) + 1
    return found if marked or any(one.content is not None for one in found) else []


def _json_strings(text: str) -> JsonStrings | None:
    try:
        return JsonStrings(text)
    except (NoJson, RecursionError):
        return None


def _cut(joined: str, texts: Sequence[str]) -> list[str]:
    pieces: list[str] = []
    at = 0
    for text in texts:
        pieces.append(joined[at : at + len(text)])
        at += len(text)
    return pieces


def _place(value: Found, scalars: Mapping[int, Mapping[str, str]]) -> _Place:
    own = scalars.get(value.holder, {})
    return _Place(value.path, tuple(f"{name}={own[name]}" for name in _PLACES if name in own))


def _unpacked(text: str) -> bytes | None:
    """Returns the protobuf message in base64, None where it is none."""
    if len(text) < _SHORTEST_PACKED or not _BASE64.fullmatch(text):
        return None
    bare = text.rstrip("=").translate(_STANDARD)
    try:
        content = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except ValueError:
        return None
    same = _encoded(content, text) == text
    return content if same and find_texts(content) else None


def _encoded(content: bytes, source: str) -> str:
    """Returns the base64 of other content of the same size, in the alphabet of the source."""
    urlsafe = "-" in source or "_" in source
    encoded = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(content).decode().rstrip("=")
    return encoded + source[len(source.rstrip("=")) :]
