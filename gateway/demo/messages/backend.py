"""Serves Anthropic Messages."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.playing import FaultRefusal, Faults, Steps, respond
from gateway.demo.messages.answer import Answer, answer_request
from gateway.demo.messages.request import MessagesRequest, read_request
from gateway.demo.messages.response import error_body, frames, message
from gateway.demo.messages.rules import Refused
from gateway.demo.player.endpoint import get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.scripted_model.words import count

MODELS = ("demo-messages",)
COUNTED = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"}
)


def messages_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Return the routes: messages, the count of their tokens, the models list and the recorded requests."""

    async def messages(request: Request) -> Response:
        steps = Steps(
            read=read_request,
            question=lambda asked: asked.marked_question,
            answer=lambda asked, model: answer_request(asked, recorder.count, model),
            respond=_response,
        )
        return await _responded(request, recorder, steps, faults)

    async def count_tokens(request: Request) -> Response:
        steps = Steps(
            read=_read_counted,
            question=lambda asked: "",
            answer=lambda asked, _: count(asked.prompt),
            respond=lambda _, number: json_answer({"input_tokens": number}),
        )
        return await _responded(request, recorder, steps, faults.of_counts())

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


async def _responded(
    request: Request, recorder: Recorder, steps: Steps[MessagesRequest, Any], faults: Faults
) -> Response:
    body = await read_body(request)
    recorder.record(request, body, json_body)
    if "anthropic-version" not in request.headers:
        return _refusal("anthropic-version: header is required")
    try:
        decoded = msgspec.json.decode(body, type=dict)
    except ValueError as error:
        return _refusal(f"the body is not a JSON object: {error}")
    try:
        return respond(steps, faults, decoded)
    except (FaultRefusal, Refused) as error:
        return _refusal(str(error))


def _read_counted(body: JsonObject) -> MessagesRequest:
    if refused := sorted(body.keys() - COUNTED):
        raise Refused(f"{refused[0]}: Extra inputs are not permitted")
    return read_request({**body, "max_tokens": 1})


def _response(request: MessagesRequest, answer: Answer) -> Response:
    return Response(frames(answer)) if request.stream else json_answer(message(answer))


def _refusal(text: str) -> Response:
    return json_answer(error_body(text, "invalid_request_error"), 400)
