"""Serves llama.cpp's completion wire: one prompt per request, and a response of pieces of text."""

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from gateway.demo.faults.playing import FaultRefusal, Faults, Steps, respond
from gateway.demo.openai import model_list
from gateway.demo.player.endpoint import get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.text.request import TextRequest, read_completion
from gateway.demo.text.response import Written, error_body, frame, frames, last_event, write_answer

MODELS = ("demo-text",)


def text_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Return the routes: completion, the models list, health and the recorded requests."""

    async def completion(request: Request) -> Response:
        return await _completion(request, recorder, faults)

    return [
        post("/completion", completion, recorder),
        get("/v1/models", lambda: model_list(MODELS)),
        get("/health", lambda: {"status": "ok"}),
        get("/__demo/requests", recorder.show),
    ]


async def _completion(request: Request, recorder: Recorder, faults: Faults) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    steps = Steps(
        read=read_completion, question=lambda asked: asked.marked_question, answer=write_answer, respond=_answer
    )
    try:
        return respond(steps, faults, msgspec.json.decode(body, type=dict))
    except FaultRefusal as error:
        return _refusal(str(error))
    except ValueError as error:
        return _refusal(f"the body is not a completion request: {error}")


def _answer(request: TextRequest, answer: Written) -> Response:
    if not request.completion.stream:
        return json_answer(last_event(answer, answer.text))
    return Response([*frames(answer), frame(last_event(answer))])


def _refusal(message: str) -> Response:
    return json_answer(error_body(400, message, "invalid_request_error"), 400)
