"""Serves Anthropic Messages."""

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from gateway.core.conversation import Json
from gateway.demo.defects.defect import NO_DEFECT, Defect
from gateway.demo.messages.answer import answer_request
from gateway.demo.messages.faults import FAULTS
from gateway.demo.messages.request import read_request
from gateway.demo.messages.response import error_body, frames, message
from gateway.demo.messages.rules import Refused
from gateway.demo.player.endpoint import get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.player.stream_faults import as_object
from gateway.demo.scripted_model.markers import find_marker
from gateway.demo.scripted_model.words import count

MODELS = ("demo-messages",)
COUNTED = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"}
)


def messages_routes(recorder: Recorder, defect: Defect = NO_DEFECT) -> list[Route]:
    """Return the routes: messages, the count of their tokens, the models list and the recorded requests."""

    async def messages(request: Request) -> Response:
        return await _messages(request, recorder, defect)

    async def count_tokens(request: Request) -> Response:
        return await _count_tokens(request, recorder, defect)

    def models() -> Json:
        listed: list[Json] = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in MODELS
        ]
        return {"data": listed, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}

    return [
        post("/v1/messages", messages, recorder),
        post("/v1/messages/count_tokens", count_tokens, recorder),
        get("/v1/models", models),
        get("/__demo/requests", recorder.show),
    ]


async def _messages(request: Request, recorder: Recorder, defect: Defect) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    if "anthropic-version" not in request.headers:
        return _refusal("anthropic-version: header is required")
    try:
        decoded = read_request(defect.reads(msgspec.json.decode(body, type=dict)))
    except ValueError as error:
        return _refusal(f"the body is not a JSON object: {error}")
    except Refused as error:
        return _refusal(str(error))
    answer = answer_request(decoded, recorder.count, defect.model)
    marker = find_marker(decoded.marked_question, "demo")
    if marker is not None and marker.name not in FAULTS:
        return _refusal(f"there is no fault {marker.name!r}; there are {', '.join(FAULTS)}")
    if marker is not None:
        fault = FAULTS[marker.name].play(answer, marker.options)
        return fault if decoded.stream else as_object(fault, msgspec.json.encode(message(answer)))
    if not decoded.stream:
        return json_answer(message(answer))
    return Response(frames(answer))


async def _count_tokens(request: Request, recorder: Recorder, defect: Defect) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    if "anthropic-version" not in request.headers:
        return _refusal("anthropic-version: header is required")
    try:
        document = defect.reads(msgspec.json.decode(body, type=dict))
        if refused := sorted(document.keys() - COUNTED):
            raise Refused(f"{refused[0]}: Extra inputs are not permitted")
        decoded = read_request({**document, "max_tokens": 1})
    except ValueError as error:
        return _refusal(f"the body is not a JSON object: {error}")
    except Refused as error:
        return _refusal(str(error))
    return json_answer({"input_tokens": count(decoded.prompt)})


def _refusal(text: str) -> Response:
    return json_answer(error_body(text, "invalid_request_error"), 400)
