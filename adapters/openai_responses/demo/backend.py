"""Serves OpenAI Responses."""

from starlette.requests import Request
from starlette.routing import Route

from adapters.openai.demo import error_body, model_list
from adapters.openai_responses.demo.answer import Answer, answer_request
from adapters.openai_responses.demo.request import ResponsesRequest, read_request
from adapters.openai_responses.demo.response import frames, response_object
from gateway.demo.faults.playing import Faults, Steps, respond_json
from gateway.demo.player.endpoint import Refused, get, post
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder

MODELS = ("demo-responses",)


def responses_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Returns the routes: responses, the count of their tokens, the models list and the recorded requests."""

    async def responses(request: Request) -> Response:
        steps = Steps(
            read=read_request,
            question=lambda asked: asked.asked,
            answer=lambda asked, model: answer_request(asked, recorder.count, model),
            respond=_response,
        )
        return await respond_json(request, recorder, steps, faults, _refusal)

    async def input_tokens(request: Request) -> Response:
        steps = Steps(
            read=read_request,
            question=lambda asked: "",
            answer=lambda asked, _: answer_request(asked, recorder.count).prompt_tokens,
            respond=lambda _, number: json_answer({"object": "response.input_tokens", "input_tokens": number}),
        )
        return await respond_json(request, recorder, steps, faults.of_counts(), _refusal)

    return [
        post("/v1/responses", responses, recorder),
        post("/v1/responses/input_tokens", input_tokens, recorder),
        get("/v1/models", lambda: model_list(MODELS)),
        get("/__demo/requests", recorder.as_json),
    ]


def _response(request: ResponsesRequest, answer: Answer) -> Response:
    return Response(frames(answer)) if request.stream else json_answer(response_object(answer))


def _refusal(error: Refused) -> Response:
    return json_answer(error_body(error.message, "invalid_request_error", error.code, error.param), error.status)
