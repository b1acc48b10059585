"""Reads a request behind what it has in common with an earlier one of its conversation.

An agent sends the whole conversation with every request, and only the last messages are new. What was read of the
others is used again where their bytes are the same: the bytes themselves are compared, so that no digest is trusted.
The rest of the body, with a mark in the place of the known messages, is a JSON document of its own. It is read like any
other; where that fails, the whole body is read, and says what is wrong with it.
"""

from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Final

import msgspec

from gateway.core.conversation import Json, ToolCall, ToolResult, ToolSpec, Turn, keep_derived
from gateway.core.errors import InvalidRequest
from gateway.dialect import ClientRequest
from gateway.dialects.document import Document, read_document
from gateway.framing.json_text import number_of

TOOLS: Final = "tools"
MODEL: Final = "model"
# They stand in the place of known messages and of known tools, in a body that does not hold them itself. Numbers,
# because there is but one way to write a whole number.
_MESSAGES_MARK: Final = 8_152_734_069_912_460_357
_TOOLS_MARK: Final = 8_152_734_069_912_460_358
_MARKS: Final = (b"%d" % _MESSAGES_MARK, b"%d" % _TOOLS_MARK)
# A shorter list of tools is read as quickly as it is found.
_LEAST_TOOLS: Final = 1024
# Bodies are compared in pieces, so that those which soon differ are not copied for it.
_PIECE: Final = 1 << 16
# A body that has a smaller part of an earlier one in common with it is read as a whole.
_LEAST_PART: Final = 4
# So much of two bodies is compared first.
_PROBE: Final = 4096
# The memory of a turn and of what is derived of it beside its text, of each further block of a turn, of a JSON value
# beside its text, and of an object or an array beside its values.
_TURN_BYTES: Final = 1536
_BLOCK_BYTES: Final = 512
_VALUE_BYTES: Final = 96
_CONTAINER_BYTES: Final = 128
# So much of a long text is looked for: the search for all of it would prepare itself for longer than it takes.
_SOUGHT: Final = 64
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])


class KnownTools(msgspec.Struct, frozen=True):
    """The tools of a request: how they were `written`, their JSON `value`, and what was read of them. `size` is the
    memory that they take."""

    written: bytes
    value: Json
    specs: tuple[ToolSpec, ...]
    size: int


class Places(msgspec.Struct, frozen=True):
    """Where a body holds its messages: behind `start`, each up to its place in `ends`. `sizes` are the memory that they
    take at most, each with all before it."""

    start: int
    ends: tuple[int, ...]
    sizes: tuple[int, ...]


NOWHERE: Final = Places(0, (), ())


class Reading:
    """What was read of a body: its document, the values of the messages, which stand in this field, and what the body
    has in common with an earlier one (None: nothing)."""

    __slots__ = ("body", "document", "field", "known", "messages")

    def __init__(
        self, field: str, body: bytes, document: Document, messages: tuple[Json, ...], known: "KnownPrefix | None"
    ) -> None:
        self.field = field
        self.body = body
        self.document = document
        self.messages = messages
        self.known = known

    @property
    def is_keepable(self) -> bool:
        """Returns whether a later body can be read behind this one: it has messages, and no fault as a text."""
        return bool(self.messages) and not self.document.repaired and not self.body.startswith(BOM_UTF8)

    def settled(self, request: ClientRequest) -> ClientRequest:
        """Returns the request that was read of the document, with the very turns and tools of the earlier one where
        they are equal and their bytes are the same: what is derived of those is kept with them."""
        if self.known is None:
            return request
        conversation, known = request.conversation, self.known
        turns = _settled_turns(conversation.turns, known, len(self.document.known))
        tools = conversation.tools
        before = known.prefix.tools
        if before is not None and tools is not before.specs and self.document.fields.get(TOOLS) is before.value:
            # Some of them may stand in a message.
            tools = before.specs if tools == before.specs and _written_alike(tools, before.specs) else tools
        conversation = msgspec.structs.replace(conversation, turns=turns, tools=tools)
        return msgspec.structs.replace(request, conversation=conversation)


class Prefix:
    """A request whose beginning later ones may have: its body, the values of its messages, and the turns that were read
    of them, which keep what is derived of them. `size` is the memory that all of it takes, in bytes, about."""

    __slots__ = ("alone", "body", "messages", "model", "places", "size", "tools", "turns")

    def __init__(self, reading: Reading, request: ClientRequest) -> None:
        """Raises no error for a reading that `is_keepable`."""
        known, fields = reading.known, reading.document.fields
        self.body = reading.body
        self.messages = reading.messages
        self.model = fields.get(MODEL)
        self.turns = request.conversation.turns
        new = self.turns[len(reading.document.known) :]
        # Whether each message was read as one turn, by itself, so that a later request may have the turn.
        self.alone = request.alone and not any(map(_has_derived_id, new))
        for value in (*new, *request.conversation.tools):
            keep_derived(value)
        members = _MEMBERS.decode(self.body if known is None else known.behind(self.body))
        self.tools = _known_tools(members, fields.get(TOOLS), request, known)
        whole = all([type(message) is dict for message in self.messages])
        self.places = self._places(bytes(members[reading.field]), known) if whole else NOWHERE
        # What is derived of the turns is as long as their text, about.
        of_tools = 0 if self.tools is None else self.tools.size
        of_messages = self.places.sizes[-1] if self.places.sizes else 0
        of_blocks = _BLOCK_BYTES * sum([len(turn.blocks) - 1 for turn in self.turns if turn.blocks])
        self.size = 2 * len(self.body) + of_tools + of_messages + of_blocks

    def _places(self, history: bytes, known: "KnownPrefix | None") -> Places:
        items, body = _ITEMS.decode(history), self.body
        if known is None:
            # Where another field has the same text before this one, no body is read behind it: the mark would be there.
            start = _find(history, body) + 1
            ends = _ends(items, body, start)
            size = _memory(self.messages, history) + _TURN_BYTES * len(items)
            return Places(start, tuple(ends), (size,) * len(ends))
        before, count = known.prefix.places, known.count
        ends = _ends(items[1:], body, known.end)
        begin, size, sizes = known.end, before.sizes[count - 1], []
        for message, end in zip(self.messages[count:], ends, strict=True):
            size += _memory((message,), body[begin:end]) + _TURN_BYTES
            sizes.append(size)
            begin = end
        return Places(before.start, (*before.ends[:count], *ends), (*before.sizes[:count], *sizes))

    @property
    def end(self) -> int:
        """The place behind the last message; 0: none may be used again."""
        return self.places.ends[-1] if self.places.ends else 0

    def common(self, body: bytes) -> int:
        """Returns with how many bytes of this one another body begins; 0: with less than a quarter, as two bodies do
        that have no more than the system prompt in common."""
        least = len(self.body) // _LEAST_PART
        # Most bodies differ here already.
        at = max(0, least - _PROBE)
        if not body.startswith(self.body[at:least], at):
            return 0
        common = _common(self.body, body)
        return common if common >= least else 0

    def known(self, body: bytes) -> "KnownPrefix | None":
        """Returns what another body has in common with this one; None: not one message."""
        return self.known_until(_common(self.body, body))

    def known_until(self, common: int) -> "KnownPrefix | None":
        """Returns what a body has in common with this one that begins with so many of its bytes; None: no message."""
        count = bisect_right(self.places.ends, common)
        return KnownPrefix(self, count) if count else None


class KnownPrefix:
    """So many messages of a prefix, with which another body begins. They end before the byte `end` of both."""

    __slots__ = ("count", "end", "prefix")

    def __init__(self, prefix: Prefix, count: int) -> None:
        self.prefix = prefix
        self.count = count
        self.end = prefix.places.ends[count - 1]

    def behind(self, body: bytes) -> bytes:
        """Returns the body with a mark in the place of the known messages."""
        return body[: self.prefix.places.start] + _MARKS[0] + body[self.end :]

    def read(self, field: str, body: bytes) -> Reading | None:
        """Returns what is read of a body that begins with these messages; None: it has to be read as a whole."""
        prefix, tools = self.prefix, self.prefix.tools
        written = self.behind(body)
        if any([mark in body[: prefix.places.start] or mark in body[self.end :] for mark in _MARKS]):
            return None
        at = -1 if tools is None else _find(tools.written, written)
        if tools is not None and at >= 0:
            written = written[:at] + _MARKS[1] + written[at + len(tools.written) :]
        try:
            document = read_document(written)
        except InvalidRequest:
            return None
        fields = document.fields
        messages = fields.get(field)
        if document.repaired or type(messages) is not list or not messages or messages[0] != _MESSAGES_MARK:
            return None
        # What is derived for one model is not kept beside that for another.
        if fields.get(MODEL) != prefix.model:
            return None
        specs: tuple[ToolSpec, ...] = ()
        if tools is not None and at >= 0:
            if fields.get(TOOLS) != _TOOLS_MARK:
                return None
            fields[TOOLS] = tools.value
            # One of them may be no function, or not permitted by this request.
            if prefix.alone and isinstance(tools.value, list) and len(tools.value) == len(tools.specs):
                specs = tools.specs
        messages[:1] = prefix.messages[: self.count]
        turns = prefix.turns[: self.count] if prefix.alone else ()
        document = msgspec.structs.replace(document, known=turns, known_tools=specs)
        return Reading(field, body, document, tuple(messages), self)


def read_whole(field: str, body: bytes) -> Reading:
    """Returns what is read of a body that is compared with no other. Raises InvalidRequest like `read_document`."""
    document = read_document(body)
    messages = document.fields.get(field)
    return Reading(field, body, document, tuple(messages) if type(messages) is list else (), None)


def _known_tools(
    members: dict[str, msgspec.Raw], value: Json, request: ClientRequest, known: KnownPrefix | None
) -> KnownTools | None:
    """Returns the tools of a request; None: they are few."""
    before = None if known is None else known.prefix.tools
    if before is not None and before.value is value:
        return before
    written = bytes(members.get(TOOLS, b""))
    if len(written) < _LEAST_TOOLS:
        return None
    # They have few commas that part no values.
    size = _most_memory(written) if written.isascii() else _memory((value,), written)
    return KnownTools(written, value, request.conversation.tools, 2 * len(written) + size)


def _find(sought: bytes, text: bytes) -> int:
    """Returns where the text has the bytes first; -1: nowhere."""
    at = text.find(sought[:_SOUGHT])
    while at >= 0 and not text.startswith(sought, at):
        at = text.find(sought[:_SOUGHT], at + 1)
    return at


def _common(one: bytes, other: bytes) -> int:
    """Returns with how many equal bytes the two begin."""
    at, step, most = 0, _PIECE, min(len(one), len(other))
    while step and at < most:
        if other.startswith(one[at : at + step], at):
            at += step
        else:
            step //= 2
    return min(at, most)


def _settled_turns(turns: tuple[Turn, ...], known: KnownPrefix, count: int) -> tuple[Turn, ...]:
    """Returns the turns, of which the first ones are those of the prefix as long as they are equal and of its messages
    alone; so many of them are those already. A turn of no message, as the system prompt is, is that of the prefix where
    it was written alike."""
    before = known.prefix.turns
    settled = [*before[:count], *turns[count:]]
    # A turn of several messages ends where the next turn begins.
    ends = [*[turn.index for turn in turns[count + 1 :]], None]
    for place, (turn, old, end) in enumerate(zip(turns[count:], before[count:], ends, strict=False), count):
        begin = turn.index
        if begin is not None and not 0 <= begin < known.count:
            break
        within = begin is not None and end is not None and begin <= end <= known.count
        if turn == old and (within or _written_alike(turn, old)):
            settled[place] = old
        elif begin is not None:
            break
    return tuple(settled)


def _written_alike(one: object, other: object) -> bool:
    """Returns whether two equal values are one text as JSON: 1, 1.0 and true are equal, too, as are two objects with
    the same fields in another order."""
    return msgspec.json.encode(one, enc_hook=dict) == msgspec.json.encode(other, enc_hook=dict)


def _has_derived_id(turn: Turn) -> bool:
    """Returns whether an id in the turn depends on other messages."""
    return any([type(block) in _WITH_ID and block.id_derived for block in turn.blocks])  # type: ignore[union-attr]  # mypy narrows no `in`


_WITH_ID: Final = frozenset((ToolCall, ToolResult))


def _ends(items: Iterable[msgspec.Raw], body: bytes, end: int) -> list[int]:
    """Returns the places behind the objects that follow this place of a body."""
    ends = []
    for item in items:
        end = body.index(b"{", end) + memoryview(item).nbytes
        ends.append(end)
    return ends


def _most_memory(written: bytes) -> int:
    """Returns the memory that a JSON value takes at most that is written so, in ASCII, in bytes, about: each value but
    one stands behind a comma or a bracket."""
    containers = number_of(b"{", written) + number_of(b"[", written)
    values = containers + number_of(b",", written)
    return len(written) + _VALUE_BYTES * values + _CONTAINER_BYTES * containers


def _memory(values: Sequence[Json], written: bytes) -> int:
    """Returns the memory of JSON values that were written so, in bytes, about, and not less. They are looked at only
    where they may take much more than their text."""
    if written.isascii() and (most := _most_memory(written)) <= 3 * len(written):
        return most
    total, left = len(written), [*values]
    # A text with one character beyond Latin takes two or four bytes for each of its characters, and what is derived of
    # it too.
    wide = not written.isascii()
    while left:
        one = left.pop()
        if isinstance(one, dict):
            inside: Iterable[Json] = one.values()
            total += sum(map(getsizeof, one)) if wide else 0
        elif isinstance(one, list):
            inside = one
        else:
            continue
        total += _CONTAINER_BYTES + _VALUE_BYTES * len(one)
        for inner in inside:
            kind = type(inner)
            if kind is dict or kind is list:
                left.append(inner)
            elif wide and kind is str:
                total += 2 * getsizeof(inner)
    return total
