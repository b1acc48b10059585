"""Names what the OpenAI chat completions dialect consists of: routes, decoder, encoders, and its published types."""

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from adapters.openai.client_errors import ErrorBody, encode_error
from adapters.openai.models import Model, ModelList, encode_model, encode_models
from adapters.openai_chat import DIALECT
from adapters.openai_chat.client.completion import encode_completion
from adapters.openai_chat.client.completion_fast_path import encode_plain
from adapters.openai_chat.client.decode import decode_document
from adapters.openai_chat.client.request_models import ChatCompletionRequest, ExplainRequest
from adapters.openai_chat.client.stream import ChatStreamEncoder
from adapters.openai_chat.messages import encode_turn
from adapters.openai_chat.response_models import ChatCompletion, ChatCompletionChunk
from adapters.openai_chat.table import GENERATE_PATH, MODELS_PATH
from gateway.core.answer import read_answer
from gateway.core.call_arguments import is_custom_tool
from gateway.core.conversation import EMPTY, Json, JsonObject, Turn
from gateway.core.errors import GatewayError
from gateway.core.events import Event
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.dialect import (
    AnswerHead,
    ClientRequest,
    ErrorAnswer,
    KeyPlace,
    ListedModels,
    ModelInfo,
    RequestHead,
    Route,
)
from gateway.dialects.document import Document
from gateway.dialects.openapi import EVENT_STREAM, JSON, Operation, events_of, json_text, reference
from gateway.providers.profile import NEUTRAL

_GENERATE: Final = Operation(
    name="create_chat_completion",
    description="A chat completion, whole or (`stream: true`) as server-sent events.",
    tag="chat",
    answers={
        JSON: reference(ChatCompletion),
        EVENT_STREAM: events_of(
            "Server-sent events. The last is `[DONE]`, or an error if the response failed after it began.",
            {"const": "[DONE]"},
            json_text(reference(ChatCompletionChunk), reference(ErrorBody)),
        ),
    },
    request=ChatCompletionRequest,
    types=(ChatCompletion, ChatCompletionChunk),
)
_MODELS: Final = Operation(
    name="list_models",
    description="The models that the gateway serves and the API key may use. If the settings pass any model name on to "
    "a backend, the list includes the models of that backend.",
    tag="models",
    answers={JSON: reference(ModelList)},
    types=(ModelList,),
)
_MODEL: Final = Operation(
    name="get_model", description="One model.", tag="models", answers={JSON: reference(Model)}, types=(Model,)
)
# The beginning of an answer's id.
_ID: Final = "chatcmpl-"
_NO_TOOLS: Final = frozenset[str]()
# Where the echo keeps the names of the custom tools.
_CUSTOM: Final = "custom"


class OpenAIChatDialect:
    """The dialect of OpenAI's chat completions and of every client that is compatible with it.

    Clients also come with a base URL that lacks `/v1`: every path is served without it, too.
    """

    name: ClassVar[str] = DIALECT
    routes: ClassVar[tuple[Route, ...]] = (
        Route("POST", f"/v1{GENERATE_PATH}", "generate", _GENERATE),
        Route("POST", GENERATE_PATH, "generate"),
        Route("GET", f"/v1{MODELS_PATH}", "models", _MODELS),
        Route("GET", MODELS_PATH, "models"),
        Route("GET", f"/v1{MODELS_PATH}/{{name}}", "model", _MODEL),
        Route("GET", f"{MODELS_PATH}/{{name}}", "model"),
    )
    key_places: ClassVar[tuple[KeyPlace, ...]] = (KeyPlace(b"authorization", "Bearer"),)
    paths: ClassVar[FieldPaths] = CANONICAL_PATHS
    signs: ClassVar[frozenset[str]] = frozenset()
    request_id_headers: ClassVar[tuple[bytes, ...]] = ()
    error_type: ClassVar[type[msgspec.Struct]] = ErrorBody
    explain_type: ClassVar[type[msgspec.Struct]] = ExplainRequest

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        conversation = decode_document(document)
        custom: list[Json] = [tool.name for tool in conversation.tools if is_custom_tool(tool)]
        return ClientRequest(conversation, {_CUSTOM: custom} if custom else EMPTY, alone=not conversation.faults)

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        return encode_turn(turn, NEUTRAL)

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        facts = (_ID + head.unique, head.created, head.model)
        if not head.diagnostics and (plain := encode_plain(events, *facts)) is not None:
            return plain
        custom = _custom_tools(request) if request.echo else _NO_TOOLS
        return encode_completion(read_answer(events), *facts, head.diagnostics, custom)

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> ChatStreamEncoder:
        return ChatStreamEncoder(
            _ID + head.unique,
            head.created,
            head.model,
            include_usage=request.conversation.include_usage,
            diagnostics=head.diagnostics,
            custom=_custom_tools(request) if request.echo else _NO_TOOLS,
        )

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return encode_error(error)

    def encode_models(self, models: ListedModels) -> bytes:
        return encode_models(models)

    def encode_model(self, model: ModelInfo) -> bytes:
        return encode_model(model)

    def example(self, model: str) -> JsonObject:
        return {"model": model, "messages": [{"role": "user", "content": "Hello"}]}


def _custom_tools(request: ClientRequest) -> frozenset[str]:
    names = request.echo.get(_CUSTOM)
    return frozenset([name for name in names if isinstance(name, str)]) if isinstance(names, list) else frozenset()
