"""Serves Google's generateContent."""

from typing import Final

from starlette.requests import Request
from starlette.routing import Route

from adapters.gemini.demo.answer import answer_gemini
from adapters.gemini.demo.request import read_gemini
from adapters.gemini.demo.response import error_body, frames, whole
from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.playing import Faults, Steps, read_object, respond
from gateway.demo.player.endpoint import Refused, get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.scripted_model.words import count

MODELS: Final = ("demo-gemini",)
_STREAM: Final = "streamGenerateContent"
_COUNT: Final = "countTokens"
_METHODS: Final[list[Json]] = ["generateContent", _STREAM, _COUNT]


def gemini_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Returns the routes: the verbs of a model, the models list and the recorded requests."""

    async def generate(request: Request) -> Response:
        return await _generate(request, recorder, faults)

    def models() -> Json:
        listed: list[Json] = [{"name": f"models/{name}", "supportedGenerationMethods": _METHODS} for name in MODELS]
        return {"models": listed}

    return [
        post("/v1beta/models/{call:path}", generate, recorder),
        get("/v1beta/models", models),
        get("/__demo/requests", recorder.as_json),
    ]


async def _generate(request: Request, recorder: Recorder, faults: Faults) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    model, _, verb = str(request.path_params["call"]).rpartition(":")
    if verb not in _METHODS or (verb == _STREAM and request.query_params.get("alt") != "sse"):
        return json_answer(error_body(404, f"there is no method {verb!r} of this form", "NOT_FOUND"), 404)
    steps = Steps(
        read=lambda body: read_gemini(body, model),
        question=lambda asked: asked.marked_question,
        answer=lambda asked, reply: answer_gemini(asked, model, recorder.count, reply),
        respond=lambda _, answer: Response(frames(answer)) if verb == _STREAM else json_answer(whole(answer)),
    )
    counting = Steps(
        read=lambda body: read_gemini(_counted(body, model), model),
        question=lambda asked: "",
        answer=lambda asked, _: count(asked.prompt),
        respond=lambda _, number: json_answer({"totalTokens": number}),
    )
    try:
        decoded = read_object(body)
        return respond(counting, faults.of_counts(), decoded) if verb == _COUNT else respond(steps, faults, decoded)
    except Refused as error:
        return json_answer(error_body(error.status, error.message, "INVALID_ARGUMENT"), error.status)


def _counted(asked: JsonObject, model: str) -> JsonObject:
    """Returns the request whose tokens are counted, which names its model."""
    counted = asked.get("generateContentRequest", {**asked, "model": f"models/{model}"})
    if not isinstance(counted, dict) or counted.get("model") != f"models/{model}":
        raise Refused("generateContentRequest.model must name the model of the path")
    return {name: value for name, value in counted.items() if name != "model"}
