"""Names the routes of the dialect and what the document says of them, and the routes that the gateway refuses."""

from typing import Final

from adapters.anthropic_messages.client.decode import COUNT_PATH
from adapters.anthropic_messages.client.request_models import CountTokensRequest, MessagesRequest
from adapters.anthropic_messages.response_models import (
    Message,
    MessageEvent,
    MessagesErrorBody,
    MessagesModel,
    MessagesModelList,
    TokenCount,
)
from adapters.anthropic_messages.table import GENERATE_PATH, MODELS_PATH
from gateway.dialect import FixedAnswer, Refusal, RequestMark, Route
from gateway.dialects.openapi import EVENT_STREAM, JSON, Operation, events_of, json_text, reference

_GENERATE: Final = Operation(
    name="create_message",
    description="A message, whole or (`stream: true`) as server-sent events.",
    tag="messages",
    answers={
        JSON: reference(Message),
        EVENT_STREAM: events_of(
            "Server-sent events. The last is `message_stop`, or `error` if the response failed after it began.",
            json_text(reference(MessageEvent), reference(MessagesErrorBody)),
        ),
    },
    request=MessagesRequest,
    types=(Message, MessageEvent),
)
_COUNT: Final = Operation(
    name="count_message_tokens",
    description="An estimate of the tokens of a request: its system prompt, tools and messages. No backend is asked.",
    tag="messages",
    answers={JSON: reference(TokenCount)},
    request=CountTokensRequest,
    types=(TokenCount,),
)
_MODELS: Final = Operation(
    name="list_messages_models",
    description="The models that the gateway serves and the API key may use.",
    tag="models",
    answers={JSON: reference(MessagesModelList)},
    types=(MessagesModelList,),
)
_MODEL: Final = Operation(
    name="get_messages_model",
    description="One model.",
    tag="models",
    answers={JSON: reference(MessagesModel)},
    types=(MessagesModel,),
)

# Every request of this API has a version; the same paths without one are those of chat completions.
_MARK: Final = RequestMark(header=b"anthropic-version")
# A key in this header alone, too, tells the clients of this API from others: some ask for the models without a version.
# Beside a bearer token it means as little as at the routes of chat completions.
_KEY_MARK: Final = RequestMark(header=b"x-api-key", unless=b"authorization")


def _refused(method: str, path: str, message: str) -> Route:
    return Route(method, path, "refused", refusal=Refusal(404, "unsupported_operation", message))


_NO_BATCHES: Final = "The gateway has no batches: send the requests one by one to /v1/messages."
_NO_FILES: Final = "The gateway stores no files: send the content as base64 or by URL in the message."

ROUTES: Final[tuple[Route, ...]] = (
    Route("POST", GENERATE_PATH, "generate", _GENERATE),
    Route("POST", COUNT_PATH, "count", _COUNT),
    Route("GET", MODELS_PATH, "models", _MODELS, mark=_MARK, facts=True),
    Route("GET", f"{MODELS_PATH}/{{name}}", "model", _MODEL, mark=_MARK, facts=True),
    Route("GET", MODELS_PATH, "models", mark=_KEY_MARK, facts=True),
    Route("GET", f"{MODELS_PATH}/{{name}}", "model", mark=_KEY_MARK, facts=True),
    # Claude Code asks whether the API is reachable.
    Route("HEAD", "/api/hello", "fixed", fixed=FixedAnswer(b"{}")),
    Route("GET", "/api/hello", "fixed", fixed=FixedAnswer(b"{}")),
    _refused("POST", f"{GENERATE_PATH}/batches", _NO_BATCHES),
    _refused("GET", f"{GENERATE_PATH}/batches", _NO_BATCHES),
    _refused("GET", f"{GENERATE_PATH}/batches/{{batch}}", _NO_BATCHES),
    _refused("POST", f"{GENERATE_PATH}/batches/{{batch}}", _NO_BATCHES),
    _refused("DELETE", f"{GENERATE_PATH}/batches/{{batch}}", _NO_BATCHES),
    _refused("POST", "/v1/files", _NO_FILES),
    _refused("GET", "/v1/files", _NO_FILES),
    _refused("GET", "/v1/files/{file}", _NO_FILES),
    _refused("DELETE", "/v1/files/{file}", _NO_FILES),
    _refused("POST", "/v1/complete", "The gateway has no text completions of this API: send messages to /v1/messages."),
)
