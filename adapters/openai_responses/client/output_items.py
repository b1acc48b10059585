"""Builds the items of an answer while they grow: what a client reads when one opens, and when it closes.

Every item is written as a sequence of events, `(type, fields)` without the sequence number:

- a message: added, part added, deltas of its text, text done, part done, item done;
- reasoning: added, for each of its parts the same, item done;
- a call of a function: added, deltas of its arguments, arguments done, item done;
- a call of a custom tool: the same, with deltas of the text inside its arguments;
- a call of any other tool: added and done at once, because clients read no part of an action.
"""

import hashlib
from collections.abc import Iterable
from itertools import count
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from adapters.openai_responses import PROVIDER
from adapters.openai_responses.call_items import FORMS, call_item
from adapters.openai_responses.client.own_fields import parts_with_own, with_own
from adapters.openai_responses.function_names import ClientTool
from gateway.core.call_arguments import INPUT, is_truncated
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.provider_state import named_state, provider_state
from gateway.dialects.custom_input import CustomInput

_PREFIX: Final = "response."
_ADDED: Final = "output_item.added"
_DONE: Final = "output_item.done"
_PART_ADDED: Final = ("content_part.added", "reasoning_summary_part.added")
_LONGEST_ID: Final = 64
_DIGEST: Final = 32

ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]
Fields: TypeAlias = dict[str, Json]


class ItemEvent(NamedTuple):
    """An event of an item, without `sequence_number`. `kind` is its type behind `response.`."""

    kind: str
    fields: Fields


class OutputItem(Protocol):
    """An item that grows. `pieces` are those of the part that grows now."""

    pieces: list[str]

    def opening(self) -> Iterable[ItemEvent]:
        """Returns the events before the first piece."""
        ...

    def delta(self) -> ItemEvent | None:
        """Returns the event of a piece without the piece, None where a piece is not shown as it is."""
        ...

    def grow(self, piece: str) -> Iterable[ItemEvent]:
        """Returns the events of a piece where `delta` returns None."""
        ...

    def said(self, event: JsonObject) -> Iterable[ItemEvent]:
        """Returns the events of what a backend of the same API says of the item beside its pieces."""
        ...

    def closing(self, status: ItemStatus, state: JsonObject) -> Iterable[ItemEvent]:
        """Returns the events behind the last piece. `state` is that of a piece of reasoning, or the events with which a
        backend of the same API ended a call, by their types."""
        ...


def added(item: Fields, index: int) -> ItemEvent:
    return ItemEvent(_ADDED, {"output_index": index, "item": item})


def event_kind(event: JsonObject) -> str:
    """Returns the type of an event behind `response.`; nothing for one without it, which is no event of the API."""
    kind = str(event.get("type", ""))
    return kind.removeprefix(_PREFIX) if kind.startswith(_PREFIX) else ""


class PartForm(NamedTuple):
    """How one type of part is written: in which field of its item, at which position, by which events, and which of its
    fields holds the text."""

    type: str
    field: str
    position: str
    framed: str
    grown: str
    text: str = "text"


OUTPUT_TEXT: Final = PartForm("output_text", "content", "content_index", "content_part", "output_text")
REFUSAL: Final = PartForm("refusal", "content", "content_index", "content_part", "refusal", "refusal")
REASONING_TEXT: Final = PartForm("reasoning_text", "content", "content_index", "content_part", "reasoning_text")
SUMMARY: Final = PartForm(
    "summary_text", "summary", "summary_index", "reasoning_summary_part", "reasoning_summary_text"
)
_FORMS: Final = {form.type: form for form in (OUTPUT_TEXT, REFUSAL, REASONING_TEXT, SUMMARY)}


def item_state(extra: JsonObject) -> JsonObject:
    """Returns the fields of a reasoning item with its state: that of OpenAI as it is, any other with the name of its
    provider."""
    own = provider_state(extra, PROVIDER)
    if own or (named := named_state(extra)) is None:
        return own
    return {"encrypted_content": named}


class OutputText:
    """A message, or reasoning: parts with text, of which one grows at a time.

    `own` is the event with which a backend of the same API began it: its further events give the parts, and keep the
    fields that the backend wrote; `source` is the index that it has there.
    """

    def __init__(self, index: int, item: Fields, default: PartForm, own: JsonObject = EMPTY) -> None:
        self._index = index
        # As the gateway makes it, and as it was written.
        self._item = self._begun = item
        self._default = default
        self._own = {_ADDED: own} if own else {}
        self._of_backend = bool(own)
        self.source = own.get("output_index")
        self._parts: dict[str, dict[int, Fields]] = {"summary": {}, "content": {}}
        self._part: PartForm | None = None
        self._position = 0
        self._ended = False
        self.pieces: list[str] = []
        self._annotations: list[Json] = []
        self._logprobs: list[Json] = []

    def opening(self) -> Iterable[ItemEvent]:
        event = self._event(_ADDED, {"output_index": self._index, "item": self._item})
        if isinstance(begun := event.fields["item"], dict):
            self._begun = begun
        yield event
        if self._default is OUTPUT_TEXT and not self._of_backend:
            yield from self.grow("")

    def delta(self) -> ItemEvent | None:
        if self._part is None:
            return None
        logprobs: Fields = {"logprobs": []} if self._part is OUTPUT_TEXT else {}
        return ItemEvent(f"{self._part.grown}.delta", {**self._place(), **logprobs})

    def grow(self, piece: str) -> Iterable[ItemEvent]:
        """Returns the events before a piece that stands in no open part."""
        self.pieces = [piece] if piece else []
        yield from self._begin_part(self._default, len(self._parts[self._default.field]))
        if piece and (event := self.delta()) is not None:
            yield ItemEvent(event.kind, {**event.fields, "delta": piece})

    def add_logprobs(self, logprobs: Json) -> None:
        """Keeps the log probabilities of a piece for the end of the text."""
        if isinstance(logprobs, list):
            self._logprobs += logprobs

    def said(self, event: JsonObject) -> Iterable[ItemEvent]:
        """Returns the events of what a backend of the same API says of this item, beside the pieces of its text. What
        it says of an item that has ended is not of this one."""
        if event.get("output_index", self.source) != self.source:
            return
        kind = event_kind(event)
        part = self._part
        if kind == _DONE:
            self._own[kind] = event
        elif kind in _PART_ADDED and (form := _form_of(event)) is not None:
            yield from self._end_part()
            self._own[kind] = event
            position = event.get(form.position)
            if not isinstance(position, int) or isinstance(position, bool) or position < 0:
                position = len(self._parts[form.field])
            yield from self._begin_part(form, position)
        elif part is not None and kind == f"{part.grown}.done":
            self._own[kind] = event
            yield from self._end_text()
        elif part is not None and kind == f"{part.framed}.done":
            self._own[kind] = event
            yield from self._end_part()
        elif kind == "output_text.annotation.added":
            place = {**self._place(), "annotation_index": len(self._annotations)}
            self._annotations.append(event.get("annotation"))
            yield ItemEvent(kind, with_own(place, event))
        else:
            yield from self._end_part() if kind in _PART_ADDED else ()
            named: Fields = {"item_id": self._item["id"]} if "item_id" in event else {}
            yield ItemEvent(kind, with_own({"output_index": self._index, **named}, event))

    def closing(self, status: ItemStatus, state: JsonObject) -> Iterable[ItemEvent]:
        yield from self._end_part()
        ended = self._own.get(_DONE, EMPTY).get("item")
        own = ended if isinstance(ended, dict) else EMPTY
        item: Fields = {
            **(self._item if own else self._begun),
            **item_state(state),
            "id": self._item["id"],
        }
        if "status" in item:
            item["status"] = status
        if self._of_backend and not own and "encrypted_content" in self._begun:
            # What the backend wrote there when the item began is no state of it (`ResponseReasoningItem` allows null).
            item["encrypted_content"] = item_state(state).get("encrypted_content")
        for field, parts in self._parts.items():
            if not parts and field in own and own[field] is None:
                item[field] = None
            elif parts or field in own or field in self._item:
                item[field] = parts_with_own(parts, own.get(field))
        yield self._event(_DONE, {"output_index": self._index, "item": item})

    def _begin_part(self, form: PartForm, position: int) -> Iterable[ItemEvent]:
        """Yields the event of a part that begins, at the next free position where that one has had a part."""
        written = self._parts[form.field]
        if position in written:
            position = next(free for free in count(len(written)) if free not in written)
        self._part, self._position, self._ended = form, position, False
        yield self._event(f"{form.framed}.added", {**self._place(), "part": self._made_part("")})

    def _end_text(self) -> Iterable[ItemEvent]:
        part = self._part
        if part is None or self._ended:
            return
        self._ended = True
        logprobs: Fields = {"logprobs": self._logprobs} if part is OUTPUT_TEXT else {}
        yield self._event(f"{part.grown}.done", {**self._place(), part.text: "".join(self.pieces), **logprobs})

    def _end_part(self) -> Iterable[ItemEvent]:
        part = self._part
        if part is None:
            return
        yield from self._end_text()
        made = self._made_part("".join(self.pieces))
        self._parts[part.field][self._position] = made
        yield self._event(f"{part.framed}.done", {**self._place(), "part": made})
        self.pieces, self._annotations, self._logprobs, self._part = [], [], [], None

    def _made_part(self, text: str) -> Fields:
        assert self._part is not None  # only an open part is written
        more: Fields = {}
        if self._part is OUTPUT_TEXT:
            more = {"annotations": self._annotations}
            if self._logprobs or not self._of_backend:
                more["logprobs"] = self._logprobs
        return {"type": self._part.type, self._part.text: text, **more}

    def _place(self) -> Fields:
        position: Fields = {} if self._part is None else {self._part.position: self._position}
        return {"item_id": self._item["id"], "output_index": self._index, **position}

    def _event(self, kind: str, made: Fields) -> ItemEvent:
        own = self._own.pop(kind, None)
        return ItemEvent(kind, made if own is None else with_own(made, own))


def message(index: int, identity: str, own: JsonObject = EMPTY) -> OutputText:
    """Returns a message that begins."""
    item: Fields = {"id": identity, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    return OutputText(index, item, OUTPUT_TEXT, own)


def reasoning(index: int, identity: str, own: JsonObject = EMPTY) -> OutputText:
    """Returns a piece of reasoning that begins."""
    item: Fields = {"id": identity, "type": "reasoning", "summary": []}
    if not own:
        item["content"] = []
    return OutputText(index, item, REASONING_TEXT, own)


def _form_of(event: JsonObject) -> PartForm | None:
    part = event.get("part")
    kind = part.get("type") if isinstance(part, dict) else None
    return _FORMS.get(kind) if isinstance(kind, str) else None


class OutputCall:
    """A call of a tool that the client runs. `own` is the event with which a backend of the same API began it."""

    def __init__(self, index: int, identity: str, tool: ClientTool, call_id: str, own: JsonObject = EMPTY) -> None:
        self.pieces: list[str] = []
        self._index = index
        self._input = CustomInput()
        self._tool = tool
        self._form = FORMS[tool.kind]
        self._id = identity
        self._call_id = _call_id(call_id) or identity
        self._place: Fields = {"item_id": identity, "output_index": index}
        self._own = {_ADDED: own} if own else {}
        self._of_backend = bool(own)
        begun = own.get("item")
        self._keeps_id = isinstance(begun, dict) and begun.get("call_id") == self._call_id

    def opening(self) -> Iterable[ItemEvent]:
        if not self._form.is_object:
            yield self._event(_ADDED, self._item({**self._made("", "in_progress"), self._form.field: ""}))
        elif self._of_backend:
            made = self._made("", "in_progress")
            del made[self._form.field]
            yield self._event(_ADDED, self._item(made))

    def delta(self) -> ItemEvent | None:
        return ItemEvent("function_call_arguments.delta", self._place) if self._tool.kind == "function" else None

    def grow(self, piece: str) -> Iterable[ItemEvent]:
        """Returns the events of a piece that is not shown as it is."""
        self.pieces.append(piece)
        if self._tool.kind == "custom":
            yield from self._input_delta(self._input.add(piece))

    def said(self, event: JsonObject) -> Iterable[ItemEvent]:
        """Returns the event of what a backend of the same API says of this call, beside its arguments."""
        made: Fields = {"output_index": self._index}
        if "item_id" in event:
            made["item_id"] = self._id
        yield ItemEvent(event_kind(event), with_own(made, event))

    def closing(self, status: ItemStatus, state: JsonObject) -> Iterable[ItemEvent]:
        ends = {kind.removeprefix(_PREFIX): event for kind, event in state.items() if isinstance(event, dict)}
        if self._of_backend:
            self._own |= ends
        arguments = "".join(self.pieces)
        incomplete = is_incomplete(ends.get(_DONE, EMPTY))
        if self._tool.kind == "function" and not arguments and not incomplete:
            # Clients parse the arguments: a call without any has the empty object, never empty text.
            arguments = "{}"
            yield ItemEvent("function_call_arguments.delta", {**self._place, "delta": arguments})
        incomplete = incomplete or is_truncated(arguments)
        made = self._made(arguments, "incomplete" if incomplete else "completed")
        match self._tool.kind:
            case "function":
                fields = {**self._place, "name": self._tool.name, "arguments": arguments}
                yield self._event("function_call_arguments.done", fields)
            case "custom":
                yield from self._input_delta(self._input.close())
                yield self._event("custom_tool_call_input.done", {**self._place, INPUT: made[INPUT]})
            case _ if not self._of_backend:
                yield ItemEvent(_ADDED, self._item({**made, "status": "in_progress"}))
            case _:
                pass
        yield self._event(_DONE, self._item(made))

    def _item(self, made: Fields) -> Fields:
        return {"output_index": self._index, "item": made}

    def _input_delta(self, text: str) -> Iterable[ItemEvent]:
        if text:
            yield ItemEvent("custom_tool_call_input.delta", {**self._place, "delta": text})

    def _made(self, arguments: str, status: ItemStatus) -> Fields:
        made = {"id": self._id, **call_item(self._tool, self._call_id, arguments)}
        # The published type of a custom call has no status.
        return made if self._of_backend and status != "incomplete" else {**made, "status": status}

    def _event(self, kind: str, made: Fields) -> ItemEvent:
        own = self._own.pop(kind, None)
        if own is None:
            return ItemEvent(kind, made)
        merged = with_own(made, own)
        said, item = own.get("item"), merged.get("item")
        if kind == _DONE and self._keeps_id and isinstance(said, dict) and isinstance(item, dict):
            # OpenAI ends some calls under another id than it began them; clients send the last one back.
            item["call_id"] = said.get("call_id", self._call_id)
        return ItemEvent(kind, merged)


def is_incomplete(event: JsonObject) -> bool:
    """Returns whether a backend's event says that its item is incomplete."""
    item = event.get("item")
    return isinstance(item, dict) and item.get("status") == "incomplete"


def item_id(prefix: str, unique: str, index: int) -> str:
    """Returns an id that the gateway gives an item."""
    return f"{prefix}_{unique}{index:02d}"


def _call_id(call_id: str) -> str:
    """Returns the id for the client, which accepts at most 64 characters. The client sends a call and its output back
    with the same id, so that a shorter one needs no memory."""
    if len(call_id) <= _LONGEST_ID:
        return call_id.strip()
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:_DIGEST]}"
