"""Converts what the backend says of a message or of its reasoning into events.

A client of the same API gets each event as the backend wrote it, and among them the texts as events of the core. Where
the backend left out the event that begins a part, the client gets one all the same.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from adapters.openai_responses import PROVIDER
from adapters.openai_responses.backend.output_item import Pieces, Place, fields_of_end, unknown_fields
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Event, PassthroughFields, ReasoningDelta, ReasoningEnd, TextDelta
from gateway.core.notices import Notice
from gateway.core.provider_state import with_provider_state
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
_SUMMARY: Final = "summary_text"
# The fields of a message that the events of its text and its end contain.
_MESSAGE_FIELDS: Final = frozenset({"type", "id", "status", "role", "content"})
_REASONING_FIELDS: Final = frozenset({"type", "summary", "content", "id", "status", "encrypted_content"})


# Whether a part is one of the summary, and its position: in the client's words.
_PartPlace: TypeAlias = tuple[bool, int]


class Latest:
    """The item of a response that began last, and the part of it that did: a client of the same API gets the next text
    there, whichever part the backend sends it for."""

    def __init__(self) -> None:
        self._item: int | None = None
        self._part: _PartPlace | None = None
        self._told = False

    def began(self, item: int) -> None:
        """Notes the beginning of an item."""
        self._item, self._part = item, None

    def began_part(self, item: int, part: _PartPlace | None) -> None:
        """Notes the beginning of a part; None: of one that began before, so that it stands at no place of the
        backend's."""
        if item == self._item:
            self._part = part

    def is_at(self, item: int, part: _PartPlace) -> bool:
        """Returns whether the next text stands in this part."""
        return item == self._item and part == self._part

    def tell(self) -> Iterator[Event]:
        """Yields the notice of a text that stands elsewhere, once in a response."""
        if not self._told:
            self._told = True
            detail = "a text came behind the beginning of another item or part, and stands in that one"
            yield Notice("backend", "moved", "TEXT_OUT_OF_ORDER", detail, level="warning")


class _TextItem:
    """An item of parts with text."""

    type: str

    def __init__(self, index: int, make: Callable[[str], Event], passthrough: Passthrough, latest: Latest) -> None:
        self._index = index
        self._make = make
        self._passthrough = passthrough
        self._latest = latest
        self._parts: dict[Place, Pieces] = {}
        self._begun_parts: set[_PartPlace] = set()

    def began_part(self, event: JsonObject) -> Iterator[Event]:
        """Yields the event that begins a part, for a client of the same API."""
        if self._passthrough.passes:
            summary = event.get("summary_index")
            position = event.get("content_index") if summary is None else summary
            if type(position) is int:
                part = (summary is not None, position)
                self._latest.began_part(self._index, None if part in self._begun_parts else part)
                self._begun_parts.add(part)
            yield PassthroughFields("event", event, frames=True)

    def pieces(self, place: Place) -> Pieces | None:
        return None if self._is_elsewhere(place) else self._parts.get(place)

    def piece(self, place: Place, text: str) -> Iterator[Event]:
        part = self._parts.get(place)
        if part is None:
            yield from self._begin_part(*place)
            part = self._parts[place] = Pieces(self._make)
        if self._is_elsewhere(place):
            yield from self._latest.tell()
        yield part.add(text)

    def _is_elsewhere(self, place: Place) -> bool:
        """Returns whether a client of the same API gets the next text of this part in another one."""
        kind, position = place
        return self._passthrough.passes and not self._latest.is_at(self._index, (kind == _SUMMARY, position))

    def whole(self, place: Place, text: str) -> Iterator[Event]:
        part = self._parts.get(place)
        rest = text if part is None else part.rest_of(text)
        if rest is None:
            detail = "the whole text differs from the pieces that were sent before it"
            yield Notice("backend", "seen", "SHOWN_TEXT_REPLACED", detail, level="warning")
        elif rest:
            yield from self.piece(place, rest)

    def close(self) -> Iterator[Event]:
        yield from ()

    def cut(self) -> Iterator[Event]:
        yield from ()

    def _begin_part(self, kind: str, position: int) -> Iterator[Event]:
        """Yields the events before the first piece of a part."""
        text = _TEXT_FIELDS[kind]
        yield from self._part_event("added", kind, position, {"type": kind, text: ""})

    def _part_event(self, moment: str, kind: str, position: int, part: JsonObject) -> Iterator[Event]:
        """Yields the event at the beginning or the end of a part, for a client of the same API, which the backend left
        out."""
        summary = kind == _SUMMARY
        if self._passthrough.passes and (moment != "added" or (summary, position) not in self._begun_parts):
            self._begun_parts.add((summary, position))
            self._latest.began_part(self._index, (summary, position))
            name = "reasoning_summary_part" if summary else "content_part"
            at: JsonObject = {"output_index": self._index, "summary_index" if summary else "content_index": position}
            yield PassthroughFields(
                "event", {"type": f"response.{name}.{moment}", **at, "part": dict(part)}, frames=True
            )

    def _whole_parts(self, parts: Json) -> Iterator[Event]:
        """Yields the events of a field with whole parts."""
        for position, part in enumerate(parts if isinstance(parts, list) else ()):
            read = part if isinstance(part, dict) else {}
            kind = str(read.get("type"))
            text = read.get(_TEXT_FIELDS.get(kind, ""))
            if isinstance(text, str):
                yield from self._whole_part((kind, position), text, read)
            elif self._passthrough.passes:
                if (kind == _SUMMARY, position) not in self._begun_parts:
                    yield from self._part_event("added", kind, position, read)
                    yield from self._part_event("done", kind, position, read)
            else:
                detail = "a content part of an unknown type"
                yield Notice("backend", "dropped", "PART_UNKNOWN", detail, level="warning")

    def _whole_part(self, place: Place, text: str, part: JsonObject) -> Iterator[Event]:
        if not text and place not in self._parts:
            yield from self._part_event("added", *place, part)
        yield from self.whole(place, text)


class MessageItem(_TextItem):
    """A message. Its annotations and log probabilities have no event of the core."""

    type = "message"

    def __init__(self, index: int, passthrough: Passthrough, latest: Latest) -> None:
        super().__init__(index, TextDelta, passthrough, latest)
        # Their number by the position of their part.
        self._annotations: Counter[int] = Counter()
        self._begun: JsonObject = EMPTY

    def begin(self, event: JsonObject, item: JsonObject) -> Iterator[Event]:
        """Yields what the pieces of its text do not contain."""
        if self._passthrough.passes:
            yield PassthroughFields("event", event, frames=True)
        elif begun := unknown_fields(item, _MESSAGE_FIELDS):
            self._begun = begun
            yield from self._passthrough.fields("event", begun)

    def annotation(self, event: JsonObject) -> list[Event]:
        """Returns the event of an annotation."""
        position = event.get("content_index")
        self._annotations[position if isinstance(position, int) else 0] += 1
        return self._passthrough.event(event, "an annotation")

    def end(self, event: JsonObject, item: JsonObject) -> Iterator[Event]:
        yield from self._whole_parts(item.get("content"))
        if self._passthrough.passes:
            yield PassthroughFields("event", event, frames=True)
        elif fields := fields_of_end(self._begun, unknown_fields(item, _MESSAGE_FIELDS)):
            yield from self._passthrough.fields("event", fields)

    def _begin_part(self, kind: str, position: int) -> Iterator[Event]:
        yield from super()._begin_part(kind, position)
        if kind == "refusal" and not self._passthrough.passes:
            detail = "the refusal of the model is sent as its text"
            yield Notice("backend", "changed", "REFUSAL_AS_TEXT", detail)

    def _whole_part(self, place: Place, text: str, part: JsonObject) -> Iterator[Event]:
        is_new = place not in self._parts
        made = [*super()._whole_part(place, text, part)]
        if is_new and (logprobs := part.get("logprobs")):
            made[-1:-1] = self._passthrough.fields("delta", {"logprobs": logprobs})
        yield from made
        annotations = part.get("annotations")
        for annotation in annotations[self._annotations[place[1]] :] if isinstance(annotations, list) else ():
            at: JsonObject = {"output_index": self._index, "content_index": place[1]}
            yield from self.annotation({"type": _ANNOTATION, **at, "annotation": annotation})


class ReasoningItem(_TextItem):
    """Reasoning: its own text, a summary, or encrypted content alone.

    For a client of another dialect an empty line stands between the parts.
    """

    type = "reasoning"

    def __init__(self, index: int, passthrough: Passthrough, latest: Latest) -> None:
        super().__init__(index, ReasoningDelta, passthrough, latest)

    def begin(self, event: JsonObject) -> Iterator[Event]:
        """Yields what the pieces of its text do not contain."""
        if self._passthrough.passes:
            yield PassthroughFields("event", event, frames=True)

    def end(self, event: JsonObject, item: JsonObject) -> Iterator[Event]:
        yield from self._whole_parts(item.get("summary"))
        yield from self._whole_parts(item.get("content"))
        content = item.get("encrypted_content")
        encrypted = bool(content) and isinstance(content, str)
        state: JsonObject = {"id": item.get("id"), "encrypted_content": content} if encrypted else EMPTY
        if self._passthrough.passes:
            yield PassthroughFields("event", event, frames=True)
        else:
            _, notices = self._passthrough.extra(unknown_fields(item, _REASONING_FIELDS))
            yield from notices
        if state or self._passthrough.passes:
            yield ReasoningEnd(with_provider_state(PROVIDER, state) if state else EMPTY)

    def _begin_part(self, kind: str, position: int) -> Iterator[Event]:
        yield from super()._begin_part(kind, position)
        if self._parts and not self._passthrough.passes:
            yield ReasoningDelta(_PARAGRAPH)
