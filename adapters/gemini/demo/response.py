"""Encodes a response as the wire of generateContent: server-sent chunks or one object."""

from collections.abc import Iterator

import msgspec

from adapters.gemini.demo.answer import Answer
from adapters.gemini.demo.thought_signature import SIGNATURE, sign
from gateway.core.conversation import Json
from gateway.demo.scripted_model.dialogue import PlannedCall


def frame(chunk: Json) -> bytes:
    """Encodes one server-sent event, with the line ends of the API."""
    return b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n"


def frames(answer: Answer) -> list[bytes]:
    """Returns the events of the whole answer."""
    return [frame(chunk) for chunk in chunks(answer)]


def chunks(answer: Answer) -> Iterator[dict[str, Json]]:
    """Yields the response piece by piece; the last chunk has the finish reason and the token counts."""
    yield from (chunk(answer, [{"text": piece, "thought": True}]) for piece in answer.reasoning)
    yield from (chunk(answer, [{"text": piece}]) for piece in answer.text)
    yield from (chunk(answer, [part]) for part in _calls(answer))
    yield chunk(answer, _end(answer), answer.finish)


def chunk(answer: Answer, parts: list[Json], finish: str | None = None) -> dict[str, Json]:
    """Builds a chunk with these parts."""
    candidate: dict[str, Json] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish is None:
        return {"candidates": [candidate], "modelVersion": answer.model, "responseId": answer.id}
    return {
        "candidates": [{**candidate, "finishReason": finish}],
        "usageMetadata": usage(answer),
        "modelVersion": answer.model,
        "responseId": answer.id,
    }


def whole(answer: Answer) -> dict[str, Json]:
    """Builds the same response as one object."""
    thoughts: list[Json] = [{"text": "".join(answer.reasoning), "thought": True}] if answer.reasoning else []
    text: list[Json] = [{"text": "".join(answer.text)}] if answer.text else []
    return chunk(answer, [*thoughts, *text, *_calls(answer)] or [{"text": ""}], answer.finish)


def usage(answer: Answer) -> dict[str, Json]:
    """Builds the token counts."""
    thoughts = len(answer.reasoning)
    counts: dict[str, Json] = {
        "promptTokenCount": answer.prompt_tokens,
        "candidatesTokenCount": answer.answer_tokens,
        "totalTokenCount": answer.prompt_tokens + answer.answer_tokens + thoughts,
    }
    return {**counts, "thoughtsTokenCount": thoughts} if thoughts else counts


def error_body(code: int, message: str, status: str, *details: Json) -> dict[str, Json]:
    """Builds the error object of the wire."""
    return {"error": {"code": code, "message": message, "status": status, "details": [*details]}}


def _calls(answer: Answer) -> Iterator[Json]:
    for position, call in enumerate(answer.calls):
        signed: dict[str, Json] = {} if position else {"thoughtSignature": _signature(answer, call)}
        yield {"functionCall": _call(call), **signed}


def _signature(answer: Answer, call: PlannedCall) -> str:
    return sign(call.name, call.arguments, answer.number) if answer.strict else SIGNATURE


def _call(call: PlannedCall) -> Json:
    return {"id": call.id, "name": call.name, "args": dict(call.arguments)}


def _end(answer: Answer) -> list[Json]:
    return [{"text": ""}] if answer.calls else [{"text": "", "thoughtSignature": SIGNATURE}]
