"""Defines the faults of the generateContent wire: responses by name that replace the normal response or follow part of
it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from adapters.gemini.demo.answer import Answer
from adapters.gemini.demo.response import chunk, chunks, error_body, frame, frames
from adapters.gemini.demo.thought_signature import unsigned_steps
from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults, instead, status_fault
from gateway.demo.player.playback import Response, json_answer

_STATUSES: Final = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
_TYPE: Final = "type.googleapis.com/google.rpc."
_BROKE: Final = error_body(500, "An internal error has occurred.", "INTERNAL")
_OVERLOADED: Final = error_body(503, "The model is overloaded. Please try again later.", "UNAVAILABLE")


def _regular(answer: Answer) -> Response:
    return Response(tuple(frames(answer)))


def _status(code: int, text: str, _: Options) -> Json:
    return error_body(code, text, _STATUSES.get(code, "INTERNAL"))


def _refused(code: int, text: str, status: str, *details: Json) -> Response:
    return json_answer(error_body(code, text, status, *details), code)


def _no_finish(answer: Answer, options: Options) -> Response:
    return Response(tuple(frames(answer)[:-1]))


def _finish(answer: Answer, options: Options) -> Response:
    """Plays the answer with another finish reason."""
    reason = options["reason"]
    return _played((*list(chunks(answer))[:-1], chunk(answer, [{"text": ""}], reason)))


def _filtered(answer: Answer, options: Options) -> Response:
    return _finish(answer, {"reason": "SAFETY"})


def _blocked(answer: Answer, options: Options) -> Response:
    feedback: Json = {"blockReason": options["reason"]}
    return _played(({"promptFeedback": feedback, "modelVersion": answer.model, "responseId": answer.id},))


def _lost_call(answer: Answer, options: Options) -> Response:
    nameless: Json = {"functionCall": {"args": {}}}
    return _played((chunk(answer, [nameless]), chunk(answer, [{"text": ""}], "STOP")))


def _double_finish(answer: Answer, options: Options) -> Response:
    late = chunk(answer, [{"text": " (late)"}], "STOP")
    return _played((*chunks(answer), late))


def _unsigned(body: JsonObject) -> str | None:
    """Returns the words for a missing signature; any signature will do."""
    contents = body.get("contents")
    turns = [turn for turn in contents if isinstance(turn, dict)] if isinstance(contents, list) else []
    return next((words for words in unsigned_steps(turns) if "missing a thought_signature" in words), None)


_WIRE: Final = WireFaults[Answer]("gemini", _regular, lambda answer, text: frame(chunk(answer, [{"text": text}])))
_QUOTA: Final = "You exceeded your current quota, please check your plan and billing details."
_DELAY: Final[Json] = {"@type": f"{_TYPE}RetryInfo", "retryDelay": "7s"}
_WRONG_KEY: Final = "API key not valid. Please pass a valid API key."
_REASON: Final[Json] = {"@type": f"{_TYPE}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
_TOO_LONG: Final = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
_STRANGE: Final[Json] = {"xDemo": {"kept": True}}

GEMINI_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    "status": status_fault(_status),
    "quota": instead(
        "429 RESOURCE_EXHAUSTED with a `retryDelay`", "429", _refused(429, _QUOTA, "RESOURCE_EXHAUSTED", _DELAY)
    ),
    "wrong_key": instead("400 API_KEY_INVALID", "credential", _refused(400, _WRONG_KEY, "INVALID_ARGUMENT", _REASON)),
    "context_length": instead(
        "400 because the prompt is too long", "400", _refused(400, _TOO_LONG, "INVALID_ARGUMENT")
    ),
    "error_first": instead(
        "200 whose first event is an error: the model is overloaded", "503_bare", Response((frame(_OVERLOADED),))
    ),
    "error_frame": _WIRE.ended("an error object in the stream", "error_event", lambda *_: frame(_BROKE)),
    "bad_shape": _WIRE.inserted(
        "a chunk of JSON with the wrong shape", "malformed", lambda *_: b'data: ["not", "a", "chunk"]\r\n\r\n'
    ),
    "unknown_part": _WIRE.inserted(
        "a part of an unknown kind", "unknown", lambda answer, _: frame(chunk(answer, [_STRANGE]))
    ),
    "bad_utf8": _WIRE.bad_utf8(),
    "huge_event": _WIRE.huge("event_too_large"),
    "no_finish": Fault("a stream without a finish reason", "no_finish", plays=_no_finish),
    "finish": Fault("another finish reason", "lost_call", options={"reason": "MALFORMED_FUNCTION_CALL"}, plays=_finish),
    "content_filter": Fault("an answer that a filter ended", finish="content_filter", plays=_filtered),
    "blocked": Fault(
        "a prompt that was blocked", options={"reason": "SAFETY"}, finish="content_filter", plays=_blocked
    ),
    "lost_call": Fault("a call without a function", "lost_call", plays=_lost_call),
    "double_finish": Fault("text and a second finish after the finish", "twice", plays=_double_finish),
    "needs_signature": Fault("it refuses the first call of a step without a thought signature", refuses=_unsigned),
}


def _played(found: Iterable[Json]) -> Response:
    return Response(tuple([frame(event) for event in found]))
