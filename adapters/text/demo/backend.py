"""Serves llama.cpp's completion wire: one prompt per request, and a response of pieces of text."""

from starlette.requests import Request
from starlette.routing import Route

from adapters.openai.demo import model_list
from adapters.text.demo.request import TextRequest, read_completion
from adapters.text.demo.response import Written, error_body, frame, frames, last_event, write_answer
from gateway.demo.faults.playing import Faults, Steps, respond_json
from gateway.demo.player.endpoint import Refused, get, post
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder

MODELS = ("demo-text",)


def text_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Returns the routes: completion, the models list, health and the recorded requests."""

    steps = Steps(
        read=read_completion, question=lambda asked: asked.marked_question, answer=write_answer, respond=_answer
    )

    async def completion(request: Request) -> Response:
        return await respond_json(request, recorder, steps, faults, _refusal)

    return [
        post("/completion", completion, recorder),
        get("/v1/models", lambda: model_list(MODELS)),
        get("/health", lambda: {"status": "ok"}),
        get("/__demo/requests", recorder.as_json),
    ]


def _answer(request: TextRequest, answer: Written) -> Response:
    if not request.completion.stream:
        return json_answer(last_event(answer, answer.text))
    return Response([*frames(answer), frame(last_event(answer))])


def _refusal(error: Refused) -> Response:
    return json_answer(error_body(error.status, error.message, "invalid_request_error"), error.status)
