"""Keeps a chunk of a backend of the same API as it was written: its fields without the parts, and the parts.

The parts pass the gateway one by one, because some of them change on the way: the labels of state, wrapped calls.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from adapters.gemini import DIALECT
from adapters.gemini.contents import call_object, signature
from adapters.gemini.finish import finish_word
from adapters.gemini.parts import SIGNATURE
from adapters.gemini.usage import usage_object
from gateway.core.call_arguments import as_object
from gateway.core.conversation import Json, JsonObject
from gateway.core.events import Finish, ToolCallStart, UsageReport
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field

_CANDIDATES: Final = "candidates"


def without_parts(chunk: JsonObject) -> JsonObject:
    """Returns a chunk with no part in its candidate, and without any further candidate."""
    candidates = chunk.get(_CANDIDATES)
    if not isinstance(candidates, list):
        return chunk
    kept: list[Json] = [_emptied(one) for one in candidates if isinstance(one, dict) and not one.get("index")]
    return {**chunk, _CANDIDATES: kept}


def _emptied(candidate: dict[str, Json]) -> Json:
    content = candidate.get("content")
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        return {**candidate, "content": {**content, "parts": []}}
    return candidate


def own_call(part: JsonObject) -> dict[str, Json]:
    """Returns the part of a call without what `ToolCallStart` says: its name, its arguments and its state."""
    call = part["functionCall"]
    assert isinstance(call, dict)  # the caller has read it
    rest: dict[str, Json] = {name: value for name, value in call.items() if name != "name"}
    if isinstance(rest.get("args"), dict):
        rest["args"] = {}
    others = {name: value for name, value in part.items() if name != SIGNATURE or not isinstance(value, str)}
    return {**others, "functionCall": rest}


def call_part(start: ToolCallStart, arguments: str) -> dict[str, Json]:
    """Returns the part of a call, of a backend of the same API with the fields that it wrote and no others."""
    own = start.extra.get(DIALECT)
    written = own.get("functionCall") if isinstance(own, dict) else None
    if not isinstance(own, dict) or not isinstance(written, dict):
        return {"functionCall": call_object(start.id, start.name, arguments), **signature(start.extra)}
    call = {**written, "name": start.name}
    if written.get("id"):
        call["id"] = start.id
    if arguments != "{}" or isinstance(written.get("args"), dict):
        call["args"] = as_object(arguments)
    return {**own, "functionCall": call, **signature(start.extra)}


class OwnChunk(msgspec.Struct):
    """A chunk and its parts so far."""

    fields: JsonObject
    parts: list[Json] = []

    def whole(self, head: AnswerHead, finish: Finish | None = None) -> dict[str, Json]:
        """Returns the chunk with its parts, and with the reason of the `finish` if the gateway itself has ended the
        answer. The gateway writes the model and the id itself."""
        fields = dict(self.fields)
        reason = None if finish is None else _own_reason(finish)
        if self.parts or reason is not None:
            written = fields.get(_CANDIDATES)
            first, *others = written if isinstance(written, list) and written else [{"index": 0}]
            fields[_CANDIDATES] = [self._filled(first, reason) if isinstance(first, dict) else first, *others]
        return {**fields, "modelVersion": head.model, "responseId": head.unique}

    def _filled(self, candidate: JsonObject, reason: str | None) -> Json:
        filled = dict(candidate)
        if self.parts:
            content = candidate.get("content")
            filled["content"] = {**(content if isinstance(content, dict) else {"role": "model"}), "parts": self.parts}
        if reason is not None and not filled.get("finishReason"):
            filled["finishReason"] = reason
        return filled


def _own_reason(finish: Finish) -> str | None:
    """Returns the reason of an end that may be the gateway's own. A backend's end without a word stays so, and a prompt
    that a filter has blocked has no candidate."""
    return None if finish.raw is None or finish.reason == "content_filter" else finish_word(finish)


def merged(chunks: Iterable[OwnChunk]) -> OwnChunk:
    """Returns the chunks of a stream as one."""
    fields: dict[str, Json] = {}
    candidate: dict[str, Json] = {}
    parts: list[Json] = []
    for chunk in chunks:
        fields |= chunk.fields
        parts += chunk.parts
        candidates = chunk.fields.get(_CANDIDATES)
        for one in candidates if isinstance(candidates, list) else ():
            candidate |= one if isinstance(one, dict) else {}
    if candidate:
        fields[_CANDIDATES] = [candidate]
    return OwnChunk(fields, parts)


def counts(usage: UsageReport | None, own: JsonObject | None = None) -> dict[str, Json]:
    """Returns the field with the token counts. `own` are the fields of a backend of the same API, whose counts stay as
    they are unless they had to be estimated."""
    if usage is None or (own is not None and not usage.estimated):
        return {}
    written = None if own is None else own.get("usageMetadata")
    return {"usageMetadata": {**(written if isinstance(written, dict) else {}), **usage_object(usage)}}


def notes(
    usage: UsageReport | None, notices: Sequence[Notice] | None, own: JsonObject | None = None
) -> dict[str, Json]:
    """Returns the field with the gateway's notes. `own` as in `counts`."""
    remarked = usage if own is None or (usage is not None and usage.estimated) else None
    said = dragoman_field(remarked, notices)
    return {"dragoman": said} if said else {}
