"""Defines the faults of the generateContent wire: responses by name that replace the normal response or follow part of
it."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.demo.gemini.answer import Answer
from gateway.demo.gemini.response import chunk, chunks, error_body, frame, frames
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.stream_faults import SSEFaults

_STREAM: Final = SSEFaults[Answer](frames, after=3)
_STATUSES: Final = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
_TYPE: Final = "type.googleapis.com/google.rpc."
_BROKE: Final = error_body(500, "An internal error has occurred.", "INTERNAL")
_OVERLOADED: Final = error_body(503, "The model is overloaded. Please try again later.", "UNAVAILABLE")


def _status(_: Answer, options: Options) -> Response:
    status = int(options.get("code", "500"))
    message = f"The demo backend was asked to answer {status}."
    body = error_body(status, message, _STATUSES.get(status, "INTERNAL"))
    headers = {"retry-after": after} if (after := options.get("retry_after")) else {}
    return Response((msgspec.json.encode(body),), status, {"content-type": "application/json", **headers})


def _quota(_: Answer, options: Options) -> Response:
    text = "You exceeded your current quota, please check your plan and billing details."
    delay: Json = {"@type": f"{_TYPE}RetryInfo", "retryDelay": "7s"}
    return json_answer(error_body(429, text, "RESOURCE_EXHAUSTED", delay), 429)


def _wrong_key(_: Answer, options: Options) -> Response:
    reason: Json = {"@type": f"{_TYPE}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
    text = "API key not valid. Please pass a valid API key."
    return json_answer(error_body(400, text, "INVALID_ARGUMENT", reason), 400)


def _context_length(_: Answer, options: Options) -> Response:
    text = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
    return json_answer(error_body(400, text, "INVALID_ARGUMENT"), 400)


def _error_first(_: Answer, options: Options) -> Response:
    return _played((_OVERLOADED,))


def _error_frame(answer: Answer, options: Options) -> Response:
    return Response((*_STREAM.begun(answer, options), frame(_BROKE)))


def _bad_shape(answer: Answer, options: Options) -> Response:
    return _STREAM.around(answer, options, b'data: ["not", "a", "chunk"]\r\n\r\n')


def _bad_utf8(answer: Answer, options: Options) -> Response:
    broken = frame(chunk(answer, [{"text": "(?)"}])).replace(b"(?)", b"(\xff)")
    return _STREAM.around(answer, options, broken)


def _no_finish(answer: Answer, options: Options) -> Response:
    return Response(tuple(frames(answer)[:-1]))


def _finish(answer: Answer, options: Options) -> Response:
    """Plays the answer with another finish reason."""
    reason = options.get("reason", "MALFORMED_FUNCTION_CALL")
    return _played((*list(chunks(answer))[:-1], chunk(answer, [{"text": ""}], reason)))


def _filtered(answer: Answer, options: Options) -> Response:
    return _finish(answer, {"reason": "SAFETY"})


def _blocked(answer: Answer, options: Options) -> Response:
    feedback: Json = {"blockReason": options.get("reason", "SAFETY")}
    return _played(({"promptFeedback": feedback, "modelVersion": answer.model, "responseId": answer.id},))


def _lost_call(answer: Answer, options: Options) -> Response:
    nameless: Json = {"functionCall": {"args": {}}}
    return _played((chunk(answer, [nameless]), chunk(answer, [{"text": ""}], "STOP")))


def _double_finish(answer: Answer, options: Options) -> Response:
    late = chunk(answer, [{"text": " (late)"}], "STOP")
    return _played((*chunks(answer), late))


def _unknown_fields(answer: Answer, options: Options) -> Response:
    return _played({**found, "xDemo": {"kept": True}} for found in chunks(answer))


def _unknown_part(answer: Answer, options: Options) -> Response:
    part: Json = {"xDemo": {"kept": True}}
    return _STREAM.around(answer, options, frame(chunk(answer, [part])))


def _huge_event(answer: Answer, options: Options) -> Response:
    size = int(float(options.get("mb", "8")) * 1024 * 1024)
    return _STREAM.around(answer, options, frame(chunk(answer, [{"text": "x" * size}])))


FAULTS: Final[Mapping[str, DemoFault[Answer]]] = {
    **_STREAM.faults(),
    "status": DemoFault("an error status: code=500, retry_after=", _status, "500"),
    "quota": DemoFault("429 RESOURCE_EXHAUSTED with a `retryDelay`", _quota, "429"),
    "wrong_key": DemoFault("400 API_KEY_INVALID", _wrong_key, "credential"),
    "context_length": DemoFault("400 because the prompt is too long", _context_length, "400"),
    "error_first": DemoFault("200 whose first event is an error: the model is overloaded", _error_first, "503_bare"),
    "error_frame": DemoFault("an error object in the stream: after=3", _error_frame, "error_event"),
    "bad_shape": DemoFault("a chunk of JSON with the wrong shape: after=3", _bad_shape, "malformed"),
    "bad_utf8": DemoFault("a chunk with a broken UTF-8 byte: after=3", _bad_utf8, "utf8"),
    "no_finish": DemoFault("a stream without a finish reason", _no_finish, "no_finish"),
    "finish": DemoFault("another finish reason: reason=MALFORMED_FUNCTION_CALL", _finish, "lost_call"),
    "content_filter": DemoFault("an answer that a filter ended", _filtered, finish="content_filter"),
    "blocked": DemoFault("a prompt that was blocked: reason=SAFETY", _blocked, finish="content_filter"),
    "lost_call": DemoFault("a call without a function", _lost_call, "lost_call"),
    "double_finish": DemoFault("text and a second finish after the finish", _double_finish, "twice"),
    "unknown_fields": DemoFault("chunks with unknown fields", _unknown_fields, "unknown"),
    "unknown_part": DemoFault("a part of an unknown kind: after=3", _unknown_part, "unknown"),
    "huge_event": DemoFault("one very large chunk: mb=8, after=3", _huge_event, "event_too_large"),
}


def _played(found: Iterable[Json]) -> Response:
    return Response(tuple([frame(event) for event in found]))
