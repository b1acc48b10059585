"""Converts what the backend says of a message or of its reasoning into events."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from adapters.openai_responses.output_item import Pieces, Place
from gateway.core.conversation import Json, JsonObject
from gateway.core.events import Event, ReasoningDelta, ReasoningEnd, TextDelta
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

    def annotation(self, event: JsonObject) -> list[Event]:
        """Return the event of an annotation."""
        self._annotations += 1
        return self._passthrough.event(event, "an annotation")

    def end(self, item: JsonObject) -> Iterator[Event]:
        yield from self._whole_parts(item.get("content"))

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

    A client of this dialect learns which of them it reads, and the id under which its provider reads it again. For any
    other client an empty line stands between the parts.
    """

    def __init__(self, item: JsonObject, passthrough: Passthrough) -> None:
        super().__init__(ReasoningDelta, passthrough)
        self._id = item.get("id")

    def end(self, item: JsonObject) -> Iterator[Event]:
        yield from self._whole_parts(item.get("summary"))
        yield from self._whole_parts(item.get("content"))
        if (content := item.get("encrypted_content")) and isinstance(content, str):
            yield ReasoningEnd(with_provider_state(PROVIDER, {"id": item.get("id"), "encrypted_content": content}))

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
