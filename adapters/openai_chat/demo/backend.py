"""Serves OpenAI Chat Completions."""

from collections.abc import Iterator

from starlette.requests import Request
from starlette.routing import Route

from adapters.openai.demo import error_body, model_list
from adapters.openai_chat.demo.answer import Answer, answer_chat
from adapters.openai_chat.demo.request import ChatRequest, read_chat
from adapters.openai_chat.demo.response import DONE, completion, deltas, finish_chunk, frame, usage_chunk
from gateway.demo.faults.playing import Faults, Steps, respond_json
from gateway.demo.player.endpoint import Refused, get, post
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder

MODELS = ("demo-chat",)


def chat_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Returns the routes: chat completions, the models list and the recorded requests."""

    async def chat(request: Request) -> Response:
        steps = Steps(
            read=read_chat,
            question=lambda asked: asked.marked_question,
            answer=lambda asked, model: answer_chat(asked, recorder.count, model),
            respond=_response,
        )
        return await respond_json(request, recorder, steps, faults, _refusal)

    return [
        post("/v1/chat/completions", chat, recorder),
        get("/v1/models", lambda: model_list(MODELS)),
        get("/__demo/requests", recorder.as_json),
    ]


def _response(request: ChatRequest, answer: Answer) -> Response:
    return Response(_frames(request, answer)) if request.stream else json_answer(completion(answer))


def _frames(request: ChatRequest, answer: Answer) -> Iterator[bytes]:
    yield from (frame(found) for found in deltas(answer))
    yield frame(finish_chunk(answer))
    if request.include_usage:
        yield frame(usage_chunk(answer))
    yield DONE


def _refusal(error: Refused) -> Response:
    return json_answer(error_body(error.message, "invalid_request_error", None, error.param), 400)
