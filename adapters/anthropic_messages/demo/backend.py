"""Serves Anthropic Messages."""

from starlette.requests import Request
from starlette.routing import Route

from adapters.anthropic_messages.demo.answer import Answer, answer_request
from adapters.anthropic_messages.demo.request import MessagesRequest, read_request
from adapters.anthropic_messages.demo.response import error_body, frames, message
from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.playing import Faults, Steps, respond_json
from gateway.demo.player.endpoint import Refused, get, post
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder
from gateway.demo.scripted_model.words import count

MODELS = ("demo-messages",)
COUNTED = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"}
)


def messages_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Returns the routes: messages, the count of their tokens, the models list and the recorded requests."""

    async def messages(request: Request) -> Response:
        steps = Steps(
            read=lambda body: read_request(_versioned(request, body)),
            question=lambda asked: asked.marked_question,
            answer=lambda asked, model: answer_request(asked, recorder.count, model),
            respond=_response,
        )
        return await respond_json(request, recorder, steps, faults, _refusal)

    async def count_tokens(request: Request) -> Response:
        steps = Steps(
            read=lambda body: _read_counted(_versioned(request, body)),
            question=lambda asked: "",
            answer=lambda asked, _: count(asked.prompt),
            respond=lambda _, number: json_answer({"input_tokens": number}),
        )
        return await respond_json(request, recorder, steps, faults.of_counts(), _refusal)

    def models() -> Json:
        listed: list[Json] = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in MODELS
        ]
        return {"data": listed, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}

    return [
        post("/v1/messages", messages, recorder),
        post("/v1/messages/count_tokens", count_tokens, recorder),
        get("/v1/models", models),
        get("/__demo/requests", recorder.as_json),
    ]


def _versioned(request: Request, body: JsonObject) -> JsonObject:
    """Returns the body of a request that names the version of the API."""
    if "anthropic-version" not in request.headers:
        raise Refused("anthropic-version: header is required")
    return body


def _read_counted(body: JsonObject) -> MessagesRequest:
    if refused := sorted(body.keys() - COUNTED):
        raise Refused(f"{refused[0]}: Extra inputs are not permitted")
    return read_request({**body, "max_tokens": 1})


def _response(request: MessagesRequest, answer: Answer) -> Response:
    return Response(frames(answer)) if request.stream else json_answer(message(answer))


def _refusal(error: Refused) -> Response:
    return json_answer(error_body(error.message, "invalid_request_error"), error.status)
