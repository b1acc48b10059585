"""Keeps the bytes around one text of a message, so that another message with these bytes need not be parsed.

Protobuf writes a length before every field of bytes. Two messages with the same bytes around one text, and with lengths
that fit, are therefore the same message with two texts. (protobuf.dev, "Encoding".)
"""

from collections.abc import Iterator, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from gateway.protobuf.wire import LENGTH, Span, read_varint, skip, varint

Meaning = TypeVar("Meaning")
# The meaning of a message, its text, and its numbers.
Reading: TypeAlias = tuple[Meaning, str, Sequence[int]]

# The messages of a response are of few kinds.
_MOST_TEMPLATES: Final = 4
# Bounds the memory for what is learned.
_MOST_AROUND: Final = 1024
# Longer messages seldom have the length of one before them.
_LONGEST_KEPT: Final = 1024


class TextTemplate(msgspec.Struct, frozen=True):
    """The bytes of a message around one text.

    `heads` are the bytes before each length that counts the text, the outermost first, and `behind` how many bytes of
    the message each of these lengths does not count behind the text. `after` are all bytes behind the text. `numbers`
    are varints that may have another value of the same size: before the first length, or behind the text (then from the
    end of the message).
    """

    heads: tuple[bytes, ...]
    behind: tuple[int, ...]
    after: bytes
    numbers: tuple[slice, ...] = ()

    def with_numbers(self, spans: Sequence[Span], length: int) -> "TextTemplate":
        """Returns the template of a message of this length whose varints at these places may change, as far as they can
        be found in a message of another length."""
        first, text_end = len(self.heads[0]), length - len(self.after)
        ahead = [slice(begin, end) for begin, end in spans if end <= first]
        behind = [slice(begin - length, end - length or None) for begin, end in spans if begin >= text_end]
        return msgspec.structs.replace(self, numbers=(*ahead, *behind))

    def with_other_text(self, payload: bytes, text: bytes) -> tuple[bytes, str]:
        """Returns the message with another text in the place of this one, and that text.

        It has the size of the other and begins differently. If it is the value of the same field, then that field is at
        this place: any other one would have kept a part of its value.
        """
        other = (b"?" if text.startswith(b"!") else b"!") * len(text)
        end = len(payload) - len(self.after)
        return payload[: end - len(text)] + other + payload[end:], other.decode()


def with_other_number(payload: bytes, place: slice) -> tuple[bytes, int]:
    """Returns the message with another varint of the same size at a place, and by how much that is more or less."""
    begin, _, _ = place.indices(len(payload))
    written = payload[begin]
    low = written & 127
    other = low % 126 + 1
    return payload[:begin] + bytes([other | written & 128]) + payload[begin + 1 :], other - low


class _Place(msgspec.Struct, Generic[Meaning], frozen=True):
    """What a message must have for a meaning: `after` at its end, and `between`, bytes and their positions. In one of
    any length, `heads` stand before the lengths from the position `at` on; in one of a known length, the bytes before
    the `text` are `before`, and among those `between` where numbers stand before them."""

    meaning: Meaning
    heads: tuple[tuple[bytes, int], ...]
    at: int
    after: bytes
    between: tuple[tuple[int, bytes], ...]
    numbers: tuple[slice, ...]
    text: slice
    before: bytes = b""

    def text_begin(self, payload: bytes) -> int:
        """Returns where the text begins in a message of any length, 0 if a length does not fit."""
        at, length = self.at, len(payload)
        for head, behind in self.heads:
            if not payload.startswith(head, at):
                return 0
            begin = at + len(head)
            size, at = payload[begin], begin + 1
            if size > 127:
                size, at = read_varint(payload, begin)
                # A length with more bytes than it needs is left to the parser.
                if not payload[at - 1]:
                    return 0
            if at + size + behind != length:
                return 0
        return at


class TextTemplates(Generic[Meaning]):
    """Holds the templates of one response, each with the meaning of its messages. `wait`: from this message on, one is
    learned."""

    def __init__(self, wait: int) -> None:
        self._places: list[_Place[Meaning]] = []
        self._by_length: dict[int, _Place[Meaning]] = {}
        self._first_wait = self._wait = wait
        self._waited = 0

    def read(self, payload: bytes) -> Reading[Meaning] | None:
        """Returns what a message means that has the bytes of a template, or None for one that must be parsed."""
        place = self._by_length.get(len(payload))
        if place is None or not (payload.startswith(place.before) and payload.endswith(place.after)):
            return self._read_new(payload) if self._places else None
        numbers = _numbers(payload, place) if place.numbers else ()
        if numbers is None:
            return self._read_new(payload)
        try:
            text = payload[place.text].decode()
        except UnicodeDecodeError:
            return None
        self._wait = self._first_wait
        return place.meaning, text, numbers

    def _read_new(self, payload: bytes) -> Reading[Meaning] | None:
        """Reads a message that is not like the one before it of its length."""
        for place in self._places:
            if not payload.endswith(place.after):
                continue
            try:
                begin = place.text_begin(payload)
            except IndexError:
                continue
            text = slice(begin, place.text.stop)
            if begin and (written := payload[text]):
                numbers = _numbers(payload, place) if place.numbers else ()
                if numbers is None:
                    continue
                try:
                    decoded = written.decode()
                except UnicodeDecodeError:
                    return None
                self._wait = self._first_wait
                if len(payload) <= _LONGEST_KEPT:
                    self._keep(place, payload, text)
                return place.meaning, decoded, numbers
        return None

    def is_due(self) -> bool:
        """Counts a message that was parsed and has one text. Returns whether it is worth the time to learn from it: a
        backend may change more than the text in every message, so that each time in vain doubles the wait."""
        self._waited += 1
        if self._waited < self._wait:
            return False
        self._waited, self._wait = 0, 2 * self._wait
        return True

    def add(self, template: TextTemplate, meaning: Meaning) -> None:
        """Keeps a template. The oldest of too many is forgotten."""
        self._places = [_place(template, meaning), *self._places][:_MOST_TEMPLATES]
        self._by_length.clear()

    def _keep(self, place: _Place[Meaning], payload: bytes, text: slice) -> None:
        before, between = payload[: text.start], place.between
        if place.at:
            before, between = b"", (*between, (place.at, before[place.at :]))
        self._by_length[len(payload)] = msgspec.structs.replace(place, text=text, before=before, between=between)


def find_template(payload: bytes, text: bytes) -> TextTemplate | None:
    """Returns the template of a message around a text, or None if it cannot be found by its bytes. It remains to be
    checked whether another text there is the value of the same field."""
    if not text or len(payload) - len(text) > _MOST_AROUND:
        return None
    length = varint(len(text))
    begin = payload.find(length + text) + len(length)
    end = begin + len(text)
    heads, behind, at = [], [], 0
    try:
        for start, stop, within in _lengths(payload, begin, end):
            heads.append(payload[at:start])
            behind.append(len(payload) - within)
            at = stop
    except (IndexError, KeyError):
        return None
    # The text may stand in another one.
    whole = at == begin and behind[-1:] == [len(payload) - end]
    return TextTemplate(tuple(heads), tuple(behind), payload[end:]) if whole else None


def _lengths(payload: bytes, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields where each length begins and ends that counts the bytes from `begin` to `end`, and where what it counts
    ends."""
    at = 0
    while at < begin:
        tag, at = read_varint(payload, at)
        kind = tag & 7
        if kind == LENGTH:
            size, start = read_varint(payload, at)
            if start <= begin and end <= start + size:
                yield at, start, start + size
                at = start
            else:
                at = start + size
        else:
            at = skip(payload, at, kind)


def _place(template: TextTemplate, meaning: Meaning) -> _Place[Meaning]:
    first, after = template.heads[0], template.after
    between: list[tuple[int, bytes]] = []
    ahead = behind = 0
    for number in template.numbers:
        if number.start >= 0:
            between.append((ahead, first[ahead : number.start]))
            ahead = number.stop
        else:
            between.append((behind - len(after), after[behind : number.start]))
            behind = len(after) + (number.stop or 0)
    heads = tuple(zip((first[ahead:], *template.heads[1:]), template.behind, strict=True))
    text = slice(0, -len(after) or None)
    return _Place(meaning, heads, ahead, after[behind:], tuple(between), template.numbers, text)


def _numbers(payload: bytes, place: _Place[Meaning]) -> list[int] | None:
    for at, piece in place.between:
        if not payload.startswith(piece, at):
            return None
    numbers = []
    for span in place.numbers:
        written = payload[span]
        number = written[-1]
        if number > 127:
            return None
        if len(written) > 1:
            for byte in written[-2::-1]:
                if byte < 128:
                    return None
                number = number << 7 | byte & 127
        numbers.append(number)
    return numbers
