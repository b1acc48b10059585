"""Converts what the backend says of a message or of its reasoning into events."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from adapters.openai_responses.output_item import Pieces, Place, fields_of_end, unknown_fields
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Event, PassthroughFields, ReasoningDelta, ReasoningEnd, TextDelta
from gateway.core.notices import Notice
from gateway.core.provider_state import with_provider_state
from gateway.dialects.openai_responses import PROVIDER
from gateway.response.passthrough import Passthrough

# The field with the text of each type of part.
_TEXT_FIELDS: Final[Mapping[str, str]] = {
    "output_text": "text",
    "refusal": "refusal",
    "reasoning_text": "text",
    "summary_text": "text",
}
_PARAGRAPH: Final = "\n\n"
_ANNOTATION: Final = "response.output_text.annotation.added"
_BEGIN: Final = "response.output_item.added"
_END: Final = "response.output_item.done"
# The fields of a message that the events of its text and its end contain.
_MESSAGE_FIELDS: Final = frozenset({"type", "id", "status", "role", "content"})
_TEXTS: Final = frozenset({"type", "summary", "content"})
_REASONING_FIELDS: Final = _TEXTS | {"id", "status", "encrypted_content"}


class _TextItem:
    """An item of parts with text."""

    def __init__(self, make: Callable[[str], Event], passthrough: Passthrough) -> None:
        self._make = make
        self._passthrough = passthrough
        self._parts: dict[Place, Pieces] = {}

    def pieces(self, place: Place) -> Pieces | None:
        return self._parts.get(place)

    def piece(self, place: Place, text: str) -> Iterator[Event]:
        part = self._parts.get(place)
        if part is None:
            yield from self._begin_part(*place)
            part = self._parts[place] = Pieces(self._make)
        yield part.add(text)

    def whole(self, place: Place, text: str) -> Iterator[Event]:
        part = self._parts.get(place)
        rest = text if part is None else part.rest_of(text)
        if rest is None:
            detail = "the whole text differs from the pieces that were sent before it"
            yield Notice("backend", "seen", "SHOWN_TEXT_REPLACED", detail, level="warning")
        elif rest:
            yield from self.piece(place, rest)

    def cut(self) -> Iterator[Event]:
        yield from ()

    def _begin_part(self, kind: str, position: int) -> Iterator[Event]:
        """Yield the events before the first piece of a part."""
        yield from ()

    def _whole_parts(self, parts: Json) -> Iterator[Event]:
        """Yield the events of a field with whole parts."""
        for position, part in enumerate(parts if isinstance(parts, list) else ()):
            read = part if isinstance(part, dict) else {}
            kind = str(read.get("type"))
            text = read.get(_TEXT_FIELDS.get(kind, ""))
            if isinstance(text, str):
                yield from self._whole_part((kind, position), text, read)
            else:
                detail = "a content part of an unknown type"
                yield Notice("backend", "dropped", "PART_UNKNOWN", detail, level="warning")

    def _whole_part(self, place: Place, text: str, part: JsonObject) -> Iterator[Event]:
        yield from self.whole(place, text)


class MessageItem(_TextItem):
    """A message. Its annotations and log probabilities have no event of the core."""

    def __init__(self, passthrough: Passthrough) -> None:
        super().__init__(TextDelta, passthrough)
        self._annotations = 0
        self._begun: JsonObject = EMPTY

    def begin(self, item: JsonObject, *, behind: bool) -> Iterator[Event]:
        """Yield what the pieces of its text do not contain: its own fields, and that it stands `behind` another one."""
        self._begun = unknown_fields(item, _MESSAGE_FIELDS)
        if self._begun or behind:
            yield from self._own_fields(_BEGIN, self._begun)

    def annotation(self, event: JsonObject) -> list[Event]:
        """Return the event of an annotation."""
        self._annotations += 1
        return self._passthrough.event(event, "an annotation")

    def end(self, item: JsonObject) -> Iterator[Event]:
        yield from self._whole_parts(item.get("content"))
        if fields := fields_of_end(self._begun, unknown_fields(item, _MESSAGE_FIELDS)):
            yield from self._own_fields(_END, fields)

    def _own_fields(self, kind: str, fields: JsonObject) -> Iterator[Event]:
        if self._passthrough.passes:
            yield PassthroughFields("event", {"type": kind, "item": {"type": "message", **fields}})
        elif fields:
            yield from self._passthrough.fields("event", fields)

    def _begin_part(self, kind: str, position: int) -> Iterator[Event]:
        if kind == "refusal":
            detail = "the refusal of the model is sent as its text"
            yield Notice("backend", "changed", "REFUSAL_AS_TEXT", detail)

    def _whole_part(self, place: Place, text: str, part: JsonObject) -> Iterator[Event]:
        if place not in self._parts and (logprobs := part.get("logprobs")):
            yield from self._passthrough.fields("delta", {"logprobs": logprobs})
        yield from self.whole(place, text)
        annotations = part.get("annotations")
        for annotation in annotations[self._annotations :] if isinstance(annotations, list) else ():
            yield from self.annotation({"type": _ANNOTATION, "annotation": annotation})


class ReasoningItem(_TextItem):
    """Reasoning: its own text, a summary, or encrypted content alone.

    A client of this dialect learns which of them it reads, and the id under which its provider reads it again, and gets
    every field of the item. For any other client an empty line stands between the parts.
    """

    def __init__(self, item: JsonObject, passthrough: Passthrough) -> None:
        super().__init__(ReasoningDelta, passthrough)
        self._id = item.get("id")

    def end(self, item: JsonObject) -> Iterator[Event]:
        yield from self._whole_parts(item.get("summary"))
        yield from self._whole_parts(item.get("content"))
        if self._passthrough.passes:
            state = unknown_fields(item, _TEXTS)
        else:
            _, notices = self._passthrough.extra(unknown_fields(item, _REASONING_FIELDS))
            yield from notices
            content = item.get("encrypted_content")
            encrypted = bool(content) and isinstance(content, str)
            state = {"id": item.get("id"), "encrypted_content": content} if encrypted else EMPTY
        if state:
            yield ReasoningEnd(with_provider_state(PROVIDER, state))

    def _begin_part(self, kind: str, position: int) -> Iterator[Event]:
        summary = self._passthrough.passes and kind == "summary_text"
        if self._parts and not summary:
            yield ReasoningDelta(_PARAGRAPH)
        if self._passthrough.passes:
            fields: dict[str, Json] = {} if self._parts else {"item_id": self._id}
            if summary:
                fields["summary_index"] = position
            if fields:
                yield from self._passthrough.fields("delta", fields)
