"""Names what the Gemini dialect consists of: routes, decoder, encoders, and its published types."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from adapters.gemini import DIALECT
from adapters.gemini.client.answer import encode_answer
from adapters.gemini.client.decode import decode_document
from adapters.gemini.client.errors import encode_error
from adapters.gemini.client.models import encode_model, encode_models
from adapters.gemini.client.paths import PATHS
from adapters.gemini.client.request_models import ExplainContentRequest
from adapters.gemini.client.routes import ROUTES
from adapters.gemini.client.stream import GeminiStreamEncoder
from adapters.gemini.client.stream_form import FORMS
from adapters.gemini.contents import encode_turn
from adapters.gemini.response_models import CountTokensResponse, GeminiErrorBody
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


class GeminiDialect:
    """The dialect of Google's generateContent, version v1 and v1beta."""

    name: ClassVar[str] = DIALECT
    routes: ClassVar[tuple[Route, ...]] = ROUTES
    key_places: ClassVar[tuple[KeyPlace, ...]] = (
        KeyPlace(b"x-goog-api-key"),
        KeyPlace(b"key", where="query"),
        KeyPlace(b"authorization", "Bearer"),
    )
    paths: ClassVar[FieldPaths] = PATHS
    signs: ClassVar[frozenset[str]] = frozenset({"contents[].parts"})
    request_id_headers: ClassVar[tuple[bytes, ...]] = ()
    error_type: ClassVar[type[msgspec.Struct]] = GeminiErrorBody
    explain_type: ClassVar[type[msgspec.Struct]] = ExplainContentRequest

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return decode_document(document, head)

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        return encode_turn(turn)

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        return encode_answer(read_answer(events), head)

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> GeminiStreamEncoder:
        return GeminiStreamEncoder(head, FORMS[str(request.echo["form"])])

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return encode_error(error)

    def encode_models(self, models: ListedModels) -> bytes:
        return encode_models(models)

    def encode_model(self, model: ModelInfo) -> bytes:
        return encode_model(model)

    def encode_count(self, tokens: int) -> bytes:
        return msgspec.json.encode(CountTokensResponse(tokens))

    def example(self, model: str) -> JsonObject:
        return {"model": model, "contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
