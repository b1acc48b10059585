"""Folds all events of a response into one `GenerateContentResponse` with the content of the equivalent stream."""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from adapters.gemini.contents import signature
from adapters.gemini.finish import finish_word
from adapters.gemini.own_chunk import OwnChunk, call_part, counts, merged, notes
from gateway.core.conversation import Json, JsonObject
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.usage import merge_usage


def encode_answer(events: Iterable[Event], head: AnswerHead) -> bytes:
    """Returns one JSON response from the events of a complete response."""
    fold = _Fold()
    fold.sort(events)
    notices = fold.notices if head.diagnostics else None
    if fold.chunks:
        own = merged(fold.chunks)
        more = {**counts(fold.usage, own.fields), **notes(fold.usage, notices, own.fields)}
        return msgspec.json.encode({**own.whole(head, fold.finish), **more})
    # Chat helpers keep only an answer with a part.
    parts: list[Json] = [part.whole() for part in fold.parts] or [{"text": ""}]
    candidate: dict[str, Json] = {"content": {"parts": parts, "role": "model"}}
    if fold.finish is not None:
        candidate["finishReason"] = finish_word(fold.finish)
    answer: dict[str, Json] = {"candidates": [{**candidate, "index": 0}], **counts(fold.usage)}
    answer |= {"modelVersion": head.model, "responseId": head.unique}
    return msgspec.json.encode({**answer, **notes(fold.usage, notices)})


class _Part(msgspec.Struct):
    """A part, the pieces of its text, and whether further text of its kind continues it."""

    fields: dict[str, Json]
    pieces: list[str] = []
    kind: type[Event] | None = None

    def whole(self) -> dict[str, Json]:
        return {"text": "".join(self.pieces), **self.fields} if self.pieces else self.fields


class _Fold:
    """The response, its pieces sorted by kind. `chunks` are those of a backend of the same API."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.finish: Finish | None = None
        self.usage: UsageReport | None = None
        self.notices: list[Notice] = []
        self.chunks: list[OwnChunk] = []
        self._calls: dict[int, tuple[ToolCallStart, list[str]]] = {}
        self._delta: dict[str, Json] = {}

    def sort(self, events: Iterable[Event]) -> None:
        # Compares classes: a match statement on an event of another class takes several times as long.
        for event in events:
            if type(event) is TextDelta:
                self._text(event, {})
            elif type(event) is ToolCallDelta or type(event) is ToolCallStart or type(event) is ToolCallEnd:
                self._call(event)
            elif type(event) is ReasoningDelta or type(event) is ReasoningEnd:
                self._reasoning(event)
            elif type(event) is PassthroughFields:
                self._unknown(event)
            elif type(event) is Finish:
                self.finish = event
            elif type(event) is UsageReport:
                self.usage = merge_usage(self.usage, event)
            elif type(event) is Notice:
                self.notices.append(event)
            elif type(event) is not ResponseStart:
                assert_never(event)

    def _reasoning(self, event: ReasoningDelta | ReasoningEnd) -> None:
        if type(event) is ReasoningEnd:
            if said := signature(event.extra):
                self._part({"text": "", **said})
        else:
            self._text(event, {"thought": True})

    def _call(self, event: ToolCallStart | ToolCallDelta | ToolCallEnd) -> None:
        if type(event) is ToolCallDelta:
            self._calls[event.index][1].append(event.arguments)
        elif type(event) is ToolCallStart:
            self._calls[event.index] = (event, [])
        else:
            start, pieces = self._calls.pop(event.index)
            self._part(call_part(start, "".join(pieces)))

    def _text(self, event: TextDelta | ReasoningDelta, fields: dict[str, Json]) -> None:
        """Continues the last part if it is of the same kind; one with fields of its own begins another."""
        last = self.parts[-1] if self.parts else None
        if last is not None and last.kind is type(event) and not self._delta:
            last.pieces.append(event.text)
            return
        kind = None if self._delta else type(event)
        self._part(fields, [event.text], kind)

    def _part(self, fields: JsonObject, pieces: list[str] | None = None, kind: type[Event] | None = None) -> None:
        part = _Part({**fields, **self._delta}, pieces or [], kind)
        self._delta = {}
        if self.chunks:
            self.chunks[-1].parts.append(part.whole())
        else:
            self.parts.append(part)

    def _unknown(self, event: PassthroughFields) -> None:
        match event.scope:
            case "response":
                self.chunks.append(OwnChunk(event.fields))
            case "event":
                self._part(event.fields)
            case "choice" | "delta":
                self._delta |= event.fields
            case _:
                assert_never(event.scope)
