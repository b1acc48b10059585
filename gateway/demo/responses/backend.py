"""Serves OpenAI Responses."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from gateway.demo.faults.playing import FaultRefusal, Faults, Steps, respond
from gateway.demo.openai import error_body, model_list
from gateway.demo.player.endpoint import get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.responses.answer import Answer, answer_request
from gateway.demo.responses.request import Refused, ResponsesRequest, read_request
from gateway.demo.responses.response import frames, response_object

MODELS = ("demo-responses",)


def responses_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Return the routes: responses, the count of their tokens, the models list and the recorded requests."""

    async def responses(request: Request) -> Response:
        steps = Steps(
            read=read_request,
            question=lambda asked: asked.asked,
            answer=lambda asked, model: answer_request(asked, recorder.count, model),
            respond=_response,
        )
        return await _responded(request, recorder, steps, faults)

    async def input_tokens(request: Request) -> Response:
        steps = Steps(
            read=read_request,
            question=lambda asked: "",
            answer=lambda asked, _: answer_request(asked, recorder.count).prompt_tokens,
            respond=lambda _, number: json_answer({"object": "response.input_tokens", "input_tokens": number}),
        )
        return await _responded(request, recorder, steps, faults.of_counts())

    return [
        post("/v1/responses", responses, recorder),
        post("/v1/responses/input_tokens", input_tokens, recorder),
        get("/v1/models", lambda: model_list(MODELS)),
        get("/__demo/requests", recorder.show),
    ]


async def _responded(
    request: Request, recorder: Recorder, steps: Steps[ResponsesRequest, Any], faults: Faults
) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    try:
        decoded = msgspec.json.decode(body, type=dict)
    except ValueError as error:
        return _refusal(Refused(f"the body is not a JSON object: {error}", None))
    try:
        return respond(steps, faults, decoded)
    except FaultRefusal as error:
        return _refusal(Refused(str(error), None))
    except Refused as error:
        return _refusal(error)


def _response(request: ResponsesRequest, answer: Answer) -> Response:
    return Response(frames(answer)) if request.stream else json_answer(response_object(answer))


def _refusal(error: Refused) -> Response:
    return json_answer(error_body(error.message, "invalid_request_error", error.code, error.param), error.status)
