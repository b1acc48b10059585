"""Serves OpenAI Chat Completions."""

from collections.abc import Iterator

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from gateway.demo.chat.answer import Answer, answer_chat
from gateway.demo.chat.faults import FAULTS
from gateway.demo.chat.request import ChatRequest, Refused, read_chat
from gateway.demo.chat.response import DONE, completion, deltas, error_body, finish_chunk, frame, usage_chunk
from gateway.demo.defects.defect import NO_DEFECT, Defect
from gateway.demo.openai_models import model_list
from gateway.demo.player.endpoint import get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.player.stream_faults import as_object
from gateway.demo.scripted_model.markers import find_marker

MODELS = ("demo-chat",)


def chat_routes(recorder: Recorder, defect: Defect = NO_DEFECT) -> list[Route]:
    """Return the routes: chat completions, the models list and the recorded requests."""

    async def chat(request: Request) -> Response:
        return await _chat(request, recorder, defect)

    return [
        post("/v1/chat/completions", chat, recorder),
        get("/v1/models", lambda: model_list(MODELS)),
        get("/__demo/requests", recorder.show),
    ]


async def _chat(request: Request, recorder: Recorder, defect: Defect) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    try:
        decoded = msgspec.json.decode(body, type=dict)
    except ValueError as error:
        return _refusal(f"the body is not a JSON object: {error}", None)
    if (words := defect.refuses(decoded)) is not None:
        return _refusal(words, None)
    try:
        chat_request = read_chat(defect.reads(decoded))
    except Refused as error:
        return _refusal(error.message, error.param)
    answer = answer_chat(chat_request, recorder.count, defect.model)
    marker = find_marker(chat_request.marked_question, "demo")
    if marker is not None and marker.name not in FAULTS:
        return _refusal(f"there is no fault {marker.name!r}; there are {', '.join(FAULTS)}", "messages")
    if marker is not None:
        fault = FAULTS[marker.name].play(answer, marker.options)
        return fault if chat_request.stream else as_object(fault, msgspec.json.encode(completion(answer)))
    if not chat_request.stream:
        return json_answer(completion(answer))
    return Response(_frames(chat_request, answer))


def _frames(request: ChatRequest, answer: Answer) -> Iterator[bytes]:
    yield from (frame(found) for found in deltas(answer))
    yield frame(finish_chunk(answer))
    if request.include_usage:
        yield frame(usage_chunk(answer))
    yield DONE


def _refusal(message: str, param: str | None) -> Response:
    return json_answer(error_body(message, "invalid_request_error", None, param), 400)
