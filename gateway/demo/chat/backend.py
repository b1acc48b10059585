"""Serves OpenAI Chat Completions."""

from collections.abc import Iterator

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from gateway.demo.chat.answer import Answer, answer_chat
from gateway.demo.chat.request import ChatRequest, Refused, read_chat
from gateway.demo.chat.response import DONE, completion, deltas, finish_chunk, frame, usage_chunk
from gateway.demo.faults.playing import FaultRefusal, Faults, Steps, respond
from gateway.demo.openai import error_body, model_list
from gateway.demo.player.endpoint import get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body

MODELS = ("demo-chat",)


def chat_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Return the routes: chat completions, the models list and the recorded requests."""

    async def chat(request: Request) -> Response:
        return await _chat(request, recorder, faults)

    return [
        post("/v1/chat/completions", chat, recorder),
        get("/v1/models", lambda: model_list(MODELS)),
        get("/__demo/requests", recorder.show),
    ]


async def _chat(request: Request, recorder: Recorder, faults: Faults) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    steps = Steps(
        read=read_chat,
        question=lambda asked: asked.marked_question,
        answer=lambda asked, model: answer_chat(asked, recorder.count, model),
        respond=_response,
    )
    try:
        decoded = msgspec.json.decode(body, type=dict)
    except ValueError as error:
        return _refusal(f"the body is not a JSON object: {error}", None)
    try:
        return respond(steps, faults, decoded)
    except FaultRefusal as error:
        return _refusal(str(error), None)
    except Refused as error:
        return _refusal(error.message, error.param)


def _response(request: ChatRequest, answer: Answer) -> Response:
    return Response(_frames(request, answer)) if request.stream else json_answer(completion(answer))


def _frames(request: ChatRequest, answer: Answer) -> Iterator[bytes]:
    yield from (frame(found) for found in deltas(answer))
    yield frame(finish_chunk(answer))
    if request.include_usage:
        yield frame(usage_chunk(answer))
    yield DONE


def _refusal(message: str, param: str | None) -> Response:
    return json_answer(error_body(message, "invalid_request_error", None, param), 400)
