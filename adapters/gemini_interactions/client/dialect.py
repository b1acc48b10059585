"""Names what the Interactions dialect consists of: routes, decoder, encoders, and its published types."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from adapters.gemini.client.dialect import GeminiDialect
from adapters.gemini.client.models import encode_model, encode_models
from adapters.gemini_interactions import DIALECT
from adapters.gemini_interactions.client.decode import decode_document
from adapters.gemini_interactions.client.errors import encode_error
from adapters.gemini_interactions.client.own_steps import CALL, MODEL, RESULT, THOUGHT, USER
from adapters.gemini_interactions.client.paths import PATHS
from adapters.gemini_interactions.client.request_models import ExplainInteractionRequest
from adapters.gemini_interactions.client.routes import ROUTES
from adapters.gemini_interactions.client.steps import encode_turn
from adapters.gemini_interactions.client.stored import missing_entries, stored_query
from adapters.gemini_interactions.client.stream import InteractionStreamEncoder
from adapters.gemini_interactions.response_models import InteractionErrorBody
from adapters.gemini_interactions.table import INPUT, PREVIOUS
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
from gateway.dialects.stateful import StoredQuery, feed_whole


class GeminiInteractionsDialect:
    """The dialect of Google's Interactions, version v1beta."""

    name: ClassVar[str] = DIALECT
    routes: ClassVar[tuple[Route, ...]] = ROUTES
    key_places: ClassVar[tuple[KeyPlace, ...]] = GeminiDialect.key_places
    paths: ClassVar[FieldPaths] = PATHS
    signs: ClassVar[frozenset[str]] = frozenset(
        {"generation_config", "system_instruction", PREVIOUS}
        | {f"{INPUT}[].type={kind}" for kind in (USER, MODEL, THOUGHT, CALL, RESULT)}
    )
    request_id_headers: ClassVar[tuple[bytes, ...]] = ()
    error_type: ClassVar[type[msgspec.Struct]] = InteractionErrorBody
    explain_type: ClassVar[type[msgspec.Struct]] = ExplainInteractionRequest

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return decode_document(document)

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        return encode_turn(turn)

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        # The stream builds the steps as it writes their events: no second fold.
        encoder = InteractionStreamEncoder(request, head, keeps=True)
        feed_whole(encoder, events)
        return encoder.whole()

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> InteractionStreamEncoder:
        return InteractionStreamEncoder(request, head, keeps=head.stored)

    def missing_entries(self, document: Document) -> Sequence[str]:
        return missing_entries(document)

    def stored_query(self, route: Route, head: RequestHead, name: str) -> StoredQuery:
        return stored_query(route, head, name)

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return encode_error(error)

    def encode_models(self, models: ListedModels) -> bytes:
        return encode_models(models)

    def encode_model(self, model: ModelInfo) -> bytes:
        return encode_model(model)

    def example(self, model: str) -> JsonObject:
        return {"model": model, INPUT: "Hello"}
