"""Names what the Ollama dialect consists of: routes, decoder, encoders, and its published types."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from adapters.ollama import DIALECT
from adapters.ollama.client.answer import encode_answer
from adapters.ollama.client.decode import decode_chat, decode_generate
from adapters.ollama.client.errors import encode_error
from adapters.ollama.client.models import encode_model, encode_models
from adapters.ollama.client.paths import CHAT_PATHS
from adapters.ollama.client.request_models import OllamaExplainRequest
from adapters.ollama.client.response_models import OllamaError
from adapters.ollama.client.routes import GENERATE_PATH, ROUTES
from adapters.ollama.client.stream import OllamaStreamEncoder
from adapters.ollama.client.turns import encode_turn
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


class OllamaDialect:
    """The dialect of Ollama's own API: chats and prompts, answered as lines of JSON.

    Some of its clients only list the models here: Copilot then chats at `/v1/chat/completions`.
    """

    name: ClassVar[str] = DIALECT
    routes: ClassVar[tuple[Route, ...]] = ROUTES
    key_places: ClassVar[tuple[KeyPlace, ...]] = (KeyPlace(b"authorization", "Bearer"),)
    paths: ClassVar[FieldPaths] = CHAT_PATHS
    signs: ClassVar[frozenset[str]] = frozenset(
        {"format", "keep_alive", "options", "think", "messages[].images", "messages[].tool_name"}
    )
    request_id_headers: ClassVar[tuple[bytes, ...]] = ()
    error_type: ClassVar[type[msgspec.Struct]] = OllamaError
    explain_type: ClassVar[type[msgspec.Struct]] = OllamaExplainRequest

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        if head.path == GENERATE_PATH or (not head.path and "prompt" in document.fields):
            return decode_generate(document)
        return decode_chat(document)

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        return encode_turn(turn)

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        return encode_answer(read_answer(events), request.echo, head)

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> OllamaStreamEncoder:
        return OllamaStreamEncoder(request.echo, head)

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return encode_error(error)

    def encode_models(self, models: ListedModels) -> bytes:
        return encode_models(models)

    def encode_model(self, model: ModelInfo) -> bytes:
        return encode_model(model)

    def example(self, model: str) -> JsonObject:
        return {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
