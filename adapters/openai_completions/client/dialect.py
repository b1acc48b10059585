"""Names what the dialect of completions consists of: routes, decoder, encoders, and its published types."""

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from adapters.openai.client_errors import ErrorBody, encode_error
from adapters.openai.models import encode_model, encode_models
from adapters.openai_completions import DIALECT
from adapters.openai_completions.client.answer import CompletionStreamEncoder, encode_answer
from adapters.openai_completions.client.decode import decode
from adapters.openai_completions.client.paths import PATHS
from adapters.openai_completions.client.request_models import CompletionExplainRequest, CompletionRequest
from adapters.openai_completions.client.response_models import Completion
from gateway.core.answer import read_answer
from gateway.core.conversation import JsonObject, Turn
from gateway.core.errors import GatewayError
from gateway.core.events import Event
from gateway.core.field_paths import FieldPaths
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

_GENERATE: Final = Operation(
    name="create_completion",
    description="An answer to a prompt, whole or (`stream: true`) as server-sent events.",
    tag="completions",
    answers={
        JSON: reference(Completion),
        EVENT_STREAM: events_of(
            "Server-sent events. The last is `[DONE]`, or an error if the response failed after it began.",
            {"const": "[DONE]"},
            json_text(reference(Completion), reference(ErrorBody)),
        ),
    },
    request=CompletionRequest,
    types=(Completion,),
)


class OpenAICompletionsDialect:
    """The dialect of OpenAI's completions, which came before its chat completions.

    It has no list of models of its own: its clients ask for that of chat completions, which has the same form.
    """

    name: ClassVar[str] = DIALECT
    routes: ClassVar[tuple[Route, ...]] = (
        Route("POST", "/v1/completions", "generate", _GENERATE),
        Route("POST", "/completions", "generate"),
    )
    key_places: ClassVar[tuple[KeyPlace, ...]] = (KeyPlace(b"authorization", "Bearer"),)
    paths: ClassVar[FieldPaths] = PATHS
    signs: ClassVar[frozenset[str]] = frozenset()
    request_id_headers: ClassVar[tuple[bytes, ...]] = ()
    error_type: ClassVar[type[msgspec.Struct]] = ErrorBody
    explain_type: ClassVar[type[msgspec.Struct]] = CompletionExplainRequest

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return ClientRequest(decode(document))

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        return [{"prompt": turn.text}]

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        return encode_answer(read_answer(events), head)

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> CompletionStreamEncoder:
        return CompletionStreamEncoder(head, include_usage=request.conversation.include_usage)

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return encode_error(error)

    def encode_models(self, models: ListedModels) -> bytes:
        return encode_models(models)

    def encode_model(self, model: ModelInfo) -> bytes:
        return encode_model(model)

    def example(self, model: str) -> JsonObject:
        return {"model": model, "prompt": "Hello"}
