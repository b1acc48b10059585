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
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from gateway.core.conversation import Json, JsonObject
from gateway.core.provider_state import named_state, provider_state
from gateway.dialects.openai_responses import PROVIDER
from gateway.dialects.openai_responses.call_items import FORMS, call_item
from gateway.dialects.openai_responses.custom_input import INPUT, CustomInput
from gateway.dialects.openai_responses.function_names import ClientTool
from gateway.history.call_arguments import is_truncated

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

    def closing(self, status: ItemStatus, state: JsonObject) -> Iterable[ItemEvent]:
        """Returns the events behind the last piece. `state` is that of a piece of reasoning, or the fields that only
        the end of a call has."""
        ...


def added(item: Fields, index: int) -> ItemEvent:
    return ItemEvent("output_item.added", {"output_index": index, "item": item})


def done(item: Fields, index: int) -> ItemEvent:
    return ItemEvent("output_item.done", {"output_index": index, "item": item})


class OutputMessage:
    """A message with one text. Only a backend of the same dialect sends annotations, logprobs and further `fields`."""

    def __init__(self, index: int, unique: str, fields: JsonObject) -> None:
        self._index = index
        self.pieces: list[str] = []
        self._annotations: list[Json] = []
        self._logprobs: list[Json] = []
        self._item: Fields = {
            **fields,
            "id": _id("msg", unique, index),
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        self._place: Fields = {"item_id": self._item["id"], "output_index": index, "content_index": 0}

    def opening(self) -> Iterable[ItemEvent]:
        yield added(self._item, self._index)
        yield ItemEvent("content_part.added", {**self._place, "part": self._part("")})

    def delta(self) -> ItemEvent | None:
        return ItemEvent("output_text.delta", {**self._place, "logprobs": []})

    def add_logprobs(self, logprobs: Json) -> None:
        """Keeps the log probabilities of a piece for the end of the text."""
        if isinstance(logprobs, list):
            self._logprobs += logprobs

    def said(self, event: JsonObject) -> Iterable[ItemEvent]:
        """Adds what a backend's event says of this message: fields of its end, or an annotation, which has an event of
        its own."""
        item = event.get("item")
        if isinstance(item, dict):
            self._item = {**self._item, **item}
            return
        fields = {"annotation_index": len(self._annotations), "annotation": event.get("annotation")}
        self._annotations.append(fields["annotation"])
        yield ItemEvent("output_text.annotation.added", {**self._place, **fields})

    def closing(self, status: ItemStatus, state: JsonObject) -> Iterable[ItemEvent]:
        part = self._part("".join(self.pieces))
        yield ItemEvent("output_text.done", {**self._place, "text": part["text"], "logprobs": self._logprobs})
        yield ItemEvent("content_part.done", {**self._place, "part": part})
        self._item = {**self._item, "status": status, "content": [part]}
        yield done(self._item, self._index)

    def _part(self, text: str) -> Fields:
        return {"type": "output_text", "text": text, "annotations": self._annotations, "logprobs": self._logprobs}


class ReasoningPart(NamedTuple):
    """How one kind of part of a reasoning item is written: in which field of the item, by which events."""

    field: str
    type: str
    position: str
    opened: str
    text: str
    closed: str


CONTENT: Final = ReasoningPart(
    "content", "reasoning_text", "content_index", "content_part.added", "reasoning_text", "content_part.done"
)
SUMMARY: Final = ReasoningPart(
    "summary",
    "summary_text",
    "summary_index",
    "reasoning_summary_part.added",
    "reasoning_summary_text",
    "reasoning_summary_part.done",
)


def item_state(extra: JsonObject) -> JsonObject:
    """Returns the fields of a reasoning item with its state: that of OpenAI as it is, any other with the name of its
    provider."""
    own = provider_state(extra, PROVIDER)
    if own or (named := named_state(extra)) is None:
        return own
    return {"encrypted_content": named}


class OutputReasoning:
    """Reasoning: its own text, or the summaries that a backend of the same dialect sent instead.

    `identity` is the id that its maker gave it: encrypted reasoning is read again only under that id.
    """

    def __init__(self, index: int, unique: str, identity: str | None = None) -> None:
        self._index = index
        self.pieces: list[str] = []
        self._item: Fields = {
            "id": identity or _id("rs", unique, index),
            "type": "reasoning",
            "summary": [],
            "content": [],
        }
        self._parts: dict[str, list[Json]] = {CONTENT.field: [], SUMMARY.field: []}
        self._part: ReasoningPart | None = None

    def opening(self) -> Iterable[ItemEvent]:
        yield added(self._item, self._index)

    def switch(self, part: ReasoningPart, position: int) -> Iterable[ItemEvent]:
        """Returns the events before a piece of the part at this position of its field: none within the open part."""
        if self._part is part and len(self._parts[part.field]) == position:
            return
        yield from self._end_part()
        self._part = part
        yield ItemEvent(part.opened, {**self._place(part), "part": {"type": part.type, "text": ""}})

    def delta(self) -> ItemEvent | None:
        return None if self._part is None else ItemEvent(f"{self._part.text}.delta", self._place(self._part))

    def closing(self, status: ItemStatus, state: JsonObject) -> Iterable[ItemEvent]:
        yield from self._end_part()
        own = {name: value for name, value in item_state(state).items() if name not in self._item}
        self._item = {**self._item, **self._parts, **own}
        yield done(self._item, self._index)

    def _end_part(self) -> Iterable[ItemEvent]:
        part = self._part
        if part is None:
            return
        text: Fields = {"type": part.type, "text": "".join(self.pieces)}
        place = self._place(part)
        yield ItemEvent(f"{part.text}.done", {**place, "text": text["text"]})
        yield ItemEvent(part.closed, {**place, "part": text})
        self._parts[part.field].append(text)
        self.pieces, self._part = [], None

    def _place(self, part: ReasoningPart) -> Fields:
        position = len(self._parts[part.field])
        return {"item_id": self._item["id"], "output_index": self._index, part.position: position}


class OutputCall:
    """A call of a tool that the client runs. Only a backend of the same dialect sends further `fields`."""

    def __init__(self, index: int, unique: str, tool: ClientTool, call_id: str, fields: JsonObject) -> None:
        self.pieces: list[str] = []
        self._index = index
        self._fields = fields
        self._input = CustomInput()
        self._tool = tool
        self._form = FORMS[tool.kind]
        self._id = _id(self._form.prefix, unique, index)
        self._call_id = _call_id(call_id) or self._id
        self._place: Fields = {"item_id": self._id, "output_index": index}

    def opening(self) -> Iterable[ItemEvent]:
        if not self._form.is_object:
            yield added({**self._fields, **self._made("", "in_progress"), self._form.field: ""}, self._index)

    def delta(self) -> ItemEvent | None:
        return ItemEvent("function_call_arguments.delta", self._place) if self._tool.kind == "function" else None

    def grow(self, piece: str) -> Iterable[ItemEvent]:
        """Returns the events of a piece that is not shown as it is."""
        if self._tool.kind == "custom":
            yield from self._input_delta(self._input.add(piece))

    def closing(self, status: ItemStatus, state: JsonObject) -> Iterable[ItemEvent]:
        arguments = "".join(self.pieces)
        incomplete = state.get("status") == "incomplete"
        if self._tool.kind == "function" and not arguments and not incomplete:
            # Clients parse the arguments: a call without any has the empty object, never empty text.
            arguments = "{}"
            yield ItemEvent("function_call_arguments.delta", {**self._place, "delta": arguments})
        incomplete = incomplete or is_truncated(arguments)
        item = {**self._fields, **state, **self._made(arguments, "incomplete" if incomplete else "completed")}
        match self._tool.kind:
            case "function":
                fields = {**self._place, "name": self._tool.name, "arguments": arguments}
                yield ItemEvent("function_call_arguments.done", fields)
            case "custom":
                yield from self._input_delta(self._input.close())
                yield ItemEvent("custom_tool_call_input.done", {**self._place, INPUT: item[INPUT]})
            case _:
                yield added({**item, "status": "in_progress"}, self._index)
        yield done(item, self._index)

    def _input_delta(self, text: str) -> Iterable[ItemEvent]:
        if text:
            yield ItemEvent("custom_tool_call_input.delta", {**self._place, "delta": text})

    def _made(self, arguments: str, status: ItemStatus) -> Fields:
        return {"id": self._id, **call_item(self._tool, self._call_id, arguments), "status": status}


def _id(prefix: str, unique: str, index: int) -> str:
    return f"{prefix}_{unique}{index:02d}"


def _call_id(call_id: str) -> str:
    """Returns the id for the client, which accepts at most 64 characters. The client sends a call and its output back
    with the same id, so that a shorter one needs no memory."""
    if len(call_id) <= _LONGEST_ID:
        return call_id.strip()
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:_DIGEST]}"
