"""Serves Google's generateContent."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from gateway.core.conversation import Json
from gateway.demo.defects.defect import NO_DEFECT, Defect
from gateway.demo.gemini.answer import answer_gemini
from gateway.demo.gemini.faults import FAULTS
from gateway.demo.gemini.request import GeminiRequest, Refused, read_gemini
from gateway.demo.gemini.response import error_body, frames, whole
from gateway.demo.player.endpoint import get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.player.stream_faults import as_object
from gateway.demo.scripted_model.markers import find_marker
from gateway.demo.scripted_model.words import count

MODELS: Final = ("demo-gemini",)
_STREAM: Final = "streamGenerateContent"
_COUNT: Final = "countTokens"
_METHODS: Final[list[Json]] = ["generateContent", _STREAM, _COUNT]


def gemini_routes(recorder: Recorder, defect: Defect = NO_DEFECT) -> list[Route]:
    """Return the routes: the verbs of a model, the models list and the recorded requests."""

    async def generate(request: Request) -> Response:
        return await _generate(request, recorder, defect)

    def models() -> Json:
        listed: list[Json] = [{"name": f"models/{name}", "supportedGenerationMethods": _METHODS} for name in MODELS]
        return {"models": listed}

    return [
        post("/v1beta/models/{call:path}", generate, recorder),
        get("/v1beta/models", models),
        get("/__demo/requests", recorder.show),
    ]


async def _generate(request: Request, recorder: Recorder, defect: Defect) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    model, _, verb = str(request.path_params["call"]).rpartition(":")
    if verb not in _METHODS or (verb == _STREAM and request.query_params.get("alt") != "sse"):
        return json_answer(error_body(404, f"there is no method {verb!r} of this form", "NOT_FOUND"), 404)
    try:
        asked = _read(_counted(body, model) if verb == _COUNT else body, model, defect)
    except (ValueError, Refused) as error:
        return _refusal(str(error))
    if verb == _COUNT:
        return json_answer({"totalTokens": count(asked.prompt)})
    answer = answer_gemini(asked, model, recorder.count, defect.model)
    marker = find_marker(asked.marked_question, "demo")
    if marker is not None and marker.name not in FAULTS:
        return _refusal(f"there is no fault {marker.name!r}; there are {', '.join(FAULTS)}")
    streams = verb == _STREAM
    if marker is not None:
        fault = FAULTS[marker.name].play(answer, marker.options)
        return fault if streams else as_object(fault, msgspec.json.encode(whole(answer)))
    return Response(frames(answer)) if streams else json_answer(whole(answer))


def _counted(body: bytes, model: str) -> bytes:
    """Return the request whose tokens are counted, which names its model."""
    asked: dict[str, Json] = msgspec.json.decode(body, type=dict)
    counted = asked.get("generateContentRequest", {**asked, "model": f"models/{model}"})
    if not isinstance(counted, dict) or counted.pop("model", None) != f"models/{model}":
        raise Refused("generateContentRequest.model must name the model of the path")
    return msgspec.json.encode(counted)


def _read(body: bytes, model: str, defect: Defect) -> GeminiRequest:
    decoded = msgspec.json.decode(body, type=dict)
    if (words := defect.refuses(decoded)) is not None:
        raise Refused(words)
    return read_gemini(defect.reads(decoded), model)


def _refusal(message: str) -> Response:
    return json_answer(error_body(400, message, "INVALID_ARGUMENT"), 400)
