"""Serves OpenAI Responses."""

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from gateway.demo.defects.defect import NO_DEFECT, Defect
from gateway.demo.openai_models import model_list
from gateway.demo.player.endpoint import get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.player.stream_faults import as_object
from gateway.demo.responses.answer import answer_request
from gateway.demo.responses.faults import FAULTS
from gateway.demo.responses.request import Refused, ResponsesRequest, read_request
from gateway.demo.responses.response import error_body, frames, response_object
from gateway.demo.scripted_model.markers import find_marker

MODELS = ("demo-responses",)


def responses_routes(recorder: Recorder, defect: Defect = NO_DEFECT) -> list[Route]:
    """Return the routes: responses, the count of their tokens, the models list and the recorded requests."""

    async def responses(request: Request) -> Response:
        return await _responses(request, recorder, defect)

    async def input_tokens(request: Request) -> Response:
        return await _input_tokens(request, recorder, defect)

    return [
        post("/v1/responses", responses, recorder),
        post("/v1/responses/input_tokens", input_tokens, recorder),
        get("/v1/models", lambda: model_list(MODELS)),
        get("/__demo/requests", recorder.show),
    ]


async def _responses(request: Request, recorder: Recorder, defect: Defect) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    try:
        decoded = _read(body, defect)
    except Refused as error:
        return _refusal(error)
    answer = answer_request(decoded, recorder.count, defect.model)
    marker = find_marker(decoded.asked, "demo")
    if marker is not None and marker.name not in FAULTS:
        return _refusal(Refused(f"there is no fault {marker.name!r}; there are {', '.join(FAULTS)}", "input"))
    if marker is not None:
        fault = FAULTS[marker.name].play(answer, marker.options)
        return fault if decoded.stream else as_object(fault, msgspec.json.encode(response_object(answer)))
    return Response(frames(answer)) if decoded.stream else json_answer(response_object(answer))


async def _input_tokens(request: Request, recorder: Recorder, defect: Defect) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    try:
        counted = answer_request(_read(body, defect), recorder.count).prompt_tokens
    except Refused as error:
        return _refusal(error)
    return json_answer({"object": "response.input_tokens", "input_tokens": counted})


def _read(body: bytes, defect: Defect) -> ResponsesRequest:
    try:
        return read_request(defect.reads(msgspec.json.decode(body, type=dict)))
    except ValueError as error:
        raise Refused(f"the body is not a JSON object: {error}", None) from error


def _refusal(error: Refused) -> Response:
    return json_answer(error_body(error.message, "invalid_request_error", error.code, error.param), error.status)
