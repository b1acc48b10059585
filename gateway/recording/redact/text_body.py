"""Cuts a body of text into the pieces that can be redacted by themselves: JSON strings, messages in base64, prose."""

import base64
import re
from typing import Final, TypeAlias

from gateway.recording.redact.json_strings import JsonReader, NoJson, said
from gateway.recording.redact.places import Place
from gateway.recording.redact.protobuf import find_texts

_SHORTEST_PACKED: Final = 4
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_STANDARD: Final = str.maketrans("-_", "+/")
_FIELD: Final = re.compile(r"(?:data: ?|event: ?|id: ?|retry: ?|: ?)?")

# What the strings of several JSON texts have in common that are pieces of one text: their place, what their objects
# say, and at which time the text comes to it.
Key: TypeAlias = tuple[Place, tuple[str, ...], int]


class TextBody:
    """One body: one JSON text, lines of JSON or of base64, which may be server-sent events, or prose.

    Joined, the `pieces` are the body. All else are numbers of pieces: `strings` those with JSON strings in quotes, by
    the text that they are pieces of; `names` those with names of fields in quotes; `numbers` those with numbers of the
    client's or its tools' objects, and their places; `packed` those with protobuf messages in base64, and these
    messages; `prose` all others with words.
    """

    def __init__(self, text: str, reader: JsonReader) -> None:
        self._reader = reader
        self.pieces: list[str] = []
        self.strings: dict[Key, list[int]] = {}
        self.names: list[int] = []
        self.numbers: dict[int, list[tuple[int, int]]] = {}
        self.packed: dict[int, bytes] = {}
        self.prose: list[int] = []
        if not self._add_json(text) and not self._add_lines(text):
            self.pieces, self.prose = [text], [0]

    def _add_lines(self, text: str) -> bool:
        """Adds all lines. Returns whether they are more than prose."""
        marked = False
        for number, line in enumerate(text.split("\n")):
            match = _FIELD.match(line)
            field = "" if match is None else match[0]
            end = "\r" if line.endswith("\r") else ""
            content = line[len(field) : len(line) - len(end)]
            self.pieces.append("\n" + field if number else field)
            if field.rstrip() in ("event:", "retry:") or content in ("", "[DONE]"):
                self.pieces.append(content)
            else:
                self._add_content(content)
            self.pieces.append(end)
            marked = marked or bool(field)
        return marked or bool(self.strings or self.numbers or self.packed)

    def _add_content(self, content: str) -> None:
        if self._add_json(content):
            return
        if (message := _unpacked(content)) is not None:
            self.packed[len(self.pieces)] = message
        else:
            self.prose.append(len(self.pieces))
        self.pieces.append(content)

    def _add_json(self, text: str) -> bool:
        try:
            pieces, shape = self._reader.read(text)
        except NoJson:
            return False
        first = len(self.pieces)
        self.pieces += pieces
        times: dict[tuple[Place, tuple[str, ...]], int] = {}
        for piece, place, spots in shape.strings:
            key = (place, said(pieces, spots) if spots else ())
            times[key] = time = times.get(key, 0) + 1
            self.strings.setdefault((*key, time), []).append(first + piece)
        self.names += [first + piece for piece in shape.keys]
        self.numbers |= {first + piece: spans for piece, spans in shape.numbers.items()}
        return True


def _unpacked(text: str) -> bytes | None:
    """Returns the protobuf message in base64, None where it is none."""
    if len(text) < _SHORTEST_PACKED or not _BASE64.fullmatch(text):
        return None
    bare = text.rstrip("=").translate(_STANDARD)
    try:
        content = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except ValueError:
        return None
    same = packed(content, text) == text
    return content if same and find_texts(content) else None


def packed(content: bytes, source: str) -> str:
    """Returns the base64 of other content of the same size, in the alphabet of the source."""
    urlsafe = "-" in source or "_" in source
    encoded = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(content).decode().rstrip("=")
    return encoded + source[len(source.rstrip("=")) :]
