"""Converts what the backend says of one output item into events, by the type of the item.

Every text arrives in pieces, then whole in the event that ends its part, and once more in the item that ends it all. A
backend may leave the pieces out: what they lack of the whole text is an event as well.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeAlias

import msgspec

from adapters.openai_responses.failure import invalid_call, invalid_event
from adapters.openai_responses.pieces import Pieces
from gateway.core.conversation import Json, JsonObject
from gateway.core.events import (
    Event,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice
from gateway.core.provider_state import with_provider_state
from gateway.dialects.openai_responses import PROVIDER
from gateway.dialects.openai_responses.call_items import CALL_KINDS, FORMS, INPUT
from gateway.dialects.openai_responses.names import ClientTool, ToolNames
from gateway.framing.json_text import NotJson, decode_json

# The type of a part, and its position: in the content of its item or in the summary.
Place: TypeAlias = tuple[str, int]

# The only part of a call.
CALL_INPUT: Final[Place] = ("input", 0)
# The field with the text of each type of part.
TEXT_FIELDS: Final = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
_PARAGRAPH: Final = "\n\n"
_encode: Final = msgspec.json.Encoder().encode


class OutputItem(Protocol):
    """One item between its beginning and its end. Every method raises BackendProtocolError."""

    def pieces(self, place: Place) -> Pieces | None:
        """Return the part that is open at this place, if there is one."""
        ...

    def piece(self, place: Place, text: str) -> Iterator[Event]:
        """Yield the events of a further piece, which is not empty."""
        ...

    def whole(self, place: Place, text: str) -> Iterator[Event]:
        """Yield the events of what the pieces lack of a whole text."""
        ...

    def end(self, item: JsonObject) -> Iterator[Event]:
        """Yield the events of the whole item, which is complete."""
        ...


class TextItem:
    """A message, or reasoning. `between` stands between two parts with text."""

    def __init__(self, make: Callable[[str], Event], between: str) -> None:
        self._make = make
        self._between = between
        self._parts: dict[Place, Pieces] = {}

    def pieces(self, place: Place) -> Pieces | None:
        return self._parts.get(place)

    def piece(self, place: Place, text: str) -> Iterator[Event]:
        part = self._parts.get(place)
        if part is None:
            if self._parts and self._between:
                yield self._make(self._between)
            part = self._parts[place] = Pieces(self._make)
        if place[0] == "refusal" and not part:
            detail = "the model's refusal is sent as its text"
            yield Notice("backend", "changed", "REFUSAL_AS_TEXT", detail)
        yield part.add(text)

    def whole(self, place: Place, text: str) -> Iterator[Event]:
        part = self._parts.get(place)
        rest = text if part is None else part.rest_of(text)
        if rest is None:
            detail = "the whole text differs from the pieces that were sent before it"
            yield Notice("backend", "seen", "SHOWN_TEXT_REPLACED", detail, level="warning")
        elif rest:
            yield from self.piece(place, rest)

    def end(self, item: JsonObject) -> Iterator[Event]:
        for field in ("summary", "content"):
            parts = item.get(field)
            for position, part in enumerate(parts if isinstance(parts, list) else ()):
                yield from self._whole_part(part, position)
        if isinstance(content := item.get("encrypted_content"), str) and content:
            yield ReasoningEnd(with_provider_state(PROVIDER, {"id": item.get("id"), "encrypted_content": content}))

    def _whole_part(self, part: Json, position: int) -> Iterator[Event]:
        kind = part.get("type") if isinstance(part, dict) else None
        field = TEXT_FIELDS.get(kind) if isinstance(kind, str) else None
        text = part.get(field) if field is not None and isinstance(part, dict) else None
        if isinstance(kind, str) and isinstance(text, str):
            yield from self.whole((kind, position), text)
        else:
            detail = "a content part of an unknown type"
            yield Notice("backend", "dropped", "PART_UNKNOWN", detail, level="warning")


class CallItem:
    """A call that the client runs. It starts as soon as its name is known.

    A call of another kind than a function becomes one of a function, as its dialect names it: a custom tool's input
    stands in an object.
    """

    def __init__(self, index: int, item: JsonObject, names: ToolNames, ids: "CallIds") -> None:
        self._index = index
        self._kind = CALL_KINDS[str(item["type"])]
        self._form = FORMS[self._kind]
        self._names = names
        self._ids = ids
        self._input = Pieces(self._delta)
        self._started = False

    def begin(self, item: JsonObject) -> Iterator[Event]:
        """Yield the events of the item as it begins, or as it ends if it had no name before."""
        name = self._kind if self._kind not in ("function", "custom") else item.get("name")
        if self._started or not isinstance(name, str) or not name:
            return
        self._started = True
        namespace = item.get("namespace")
        tool = ClientTool(self._kind, name, namespace if isinstance(namespace, str) else None)
        said = item.get("call_id") or item.get("id")
        call_id = self._ids.take(said if isinstance(said, str) else "", self._index)
        if call_id != said:
            detail = "a call's id was missing or already used"
            yield Notice("backend", "changed", "CALL_ID_MADE", detail, tool_call_id=call_id, level="warning")
        yield ToolCallStart(self._index, call_id, self._names.name(tool))
        if self._kind == "custom":
            yield ToolCallDelta(self._index, f'{{"{INPUT}":"')

    def pieces(self, place: Place) -> Pieces | None:
        return self._input if self._started else None

    def piece(self, place: Place, text: str) -> Iterator[Event]:
        if not self._started:
            raise invalid_event("the input of a call without a name")
        yield self._input.add(text)

    def whole(self, place: Place, text: str) -> Iterator[Event]:
        if not self._started:
            # The item that ends the call has its name and its whole input.
            return
        rest = self._input.rest_of(text)
        if rest:
            yield self._input.add(rest)
        elif rest is None and (self._kind == "custom" or not _same_json(text, self._input.joined())):
            raise invalid_call("The backend sent a tool call whose whole arguments differ from their pieces.")

    def end(self, item: JsonObject) -> Iterator[Event]:
        yield from self.begin(item)
        if not self._started:
            raise invalid_call("The backend sent a tool call without the name of a function.")
        written = item.get(self._form.field)
        if written is not None:
            yield from self.whole(CALL_INPUT, written if isinstance(written, str) else _encode(written).decode())
        if self._kind == "custom":
            yield ToolCallDelta(self._index, '"}')
        elif not self._input:
            yield ToolCallDelta(self._index, "{}")
        yield ToolCallEnd(self._index)

    def _delta(self, text: str) -> Event:
        if self._kind == "custom":
            text = _encode(text)[1:-1].decode()
        return ToolCallDelta(self._index, text)


class CallIds:
    """Gives every call of a response an id of its own. `seed` makes derived ids differ from those of earlier responses
    in a conversation."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._taken: set[str] = set()

    def take(self, said: str, index: int) -> str:
        """Return the backend's id, or another one where it sent none or that of another call."""
        number = index
        while not said or said in self._taken:
            said = f"call_{self._seed}_{number}"
            number += 1
        self._taken.add(said)
        return said


def _same_json(one: str, other: str) -> bool:
    """Whether two texts are the same JSON value, perhaps with other spaces."""
    try:
        return decode_json(one.encode()) == decode_json(other.encode())
    except NotJson:
        return False


def begin_item(index: int, item: JsonObject, names: ToolNames, ids: CallIds) -> OutputItem | None:
    """Return the item of a known type that begins, else None."""
    kind = item.get("type")
    if kind == "message":
        return TextItem(TextDelta, "")
    if kind == "reasoning":
        return TextItem(ReasoningDelta, _PARAGRAPH)
    if isinstance(kind, str) and kind in CALL_KINDS:
        return CallItem(index, item, names, ids)
    return None
