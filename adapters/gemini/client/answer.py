"""Encodes an answer as one `GenerateContentResponse`."""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from adapters.gemini.contents import signature
from adapters.gemini.finish import finish_word
from adapters.gemini.own_chunk import OwnChunk, call_part, counts, merged, notes
from gateway.core.answer import Answer, AnswerCall, AnswerPart, AnswerReasoning, AnswerText
from gateway.core.conversation import Json, JsonObject
from gateway.core.events import PassthroughFields, ReasoningEnd
from gateway.dialect import AnswerHead


def encode_answer(answer: Answer, head: AnswerHead) -> bytes:
    """Returns one JSON response."""
    content = _Content()
    content.add(answer.completed())
    usage, notices = answer.usage, answer.notices if head.diagnostics else None
    if content.chunks:
        own = merged([OwnChunk({}, [part.whole() for part in content.parts]), *content.chunks])
        more = {**counts(usage, own.fields), **notes(usage, notices, own.fields)}
        return msgspec.json.encode({**own.whole(head, answer.finish), **more})
    # Chat helpers keep only an answer with a part.
    parts: list[Json] = [part.whole() for part in content.parts] or [{"text": ""}]
    candidate: dict[str, Json] = {"content": {"parts": parts, "role": "model"}}
    if answer.finish is not None:
        candidate["finishReason"] = finish_word(answer.finish)
    response: dict[str, Json] = {"candidates": [{**candidate, "index": 0}], **counts(usage)}
    response |= {"modelVersion": head.model, "responseId": head.unique}
    return msgspec.json.encode({**response, **notes(usage, notices)})


class _Part(msgspec.Struct):
    """A part, the pieces of its text, and the kind of text that continues it."""

    fields: dict[str, Json]
    pieces: list[str] = []
    kind: type[AnswerPart] | None = None

    def whole(self) -> dict[str, Json]:
        return {"text": "".join(self.pieces), **self.fields} if self.pieces else self.fields


class _Content:
    """The parts of an answer, as they are complete. `chunks` are those of a backend of the same API."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.chunks: list[OwnChunk] = []
        self._delta: dict[str, Json] = {}

    def add(self, parts: Iterable[AnswerPart]) -> None:
        for part in parts:
            if type(part) is AnswerText:
                self._text(part, {})
            elif type(part) is AnswerReasoning:
                self._text(part, {"thought": True})
            elif type(part) is AnswerCall:
                self._part(call_part(part.start, part.arguments))
            elif type(part) is ReasoningEnd:
                if said := signature(part.extra):
                    self._part({"text": "", **said})
            elif type(part) is PassthroughFields:
                self._unknown(part)
            else:
                assert_never(part)

    def _text(self, text: AnswerText | AnswerReasoning, fields: dict[str, Json]) -> None:
        """Adds the text to the last part if it is of the same kind. A piece with fields of its own is a part, and so is
        each piece in a chunk of a backend of the same API."""
        pieces = text.pieces
        if self._delta:
            self._part(fields, pieces[:1])
            pieces = pieces[1:]
        if self.chunks:
            for piece in pieces:
                self._part(fields, [piece])
        elif pieces and self.parts and self.parts[-1].kind is type(text):
            self.parts[-1].pieces += pieces
        elif pieces:
            self._part(fields, pieces[:], type(text))

    def _part(self, fields: JsonObject, pieces: list[str] | None = None, kind: type[AnswerPart] | None = None) -> None:
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
