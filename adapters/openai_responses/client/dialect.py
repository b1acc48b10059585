"""Names what the OpenAI Responses dialect consists of: routes, decoder, encoders, and its published types."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from adapters.openai_responses import DIALECT
from adapters.openai_responses.call_items import CALL_KINDS, OUTPUT_KINDS
from adapters.openai_responses.client import websocket
from adapters.openai_responses.client.compaction import (
    RETAINED,
    compacted_object,
    compaction_events,
    compaction_opening,
    without_request,
)
from adapters.openai_responses.client.decode import decode_document
from adapters.openai_responses.client.errors import encode_error
from adapters.openai_responses.client.models import encode_model, encode_models
from adapters.openai_responses.client.paths import PATHS
from adapters.openai_responses.client.request_models import ExplainResponsesRequest
from adapters.openai_responses.client.routes import ROUTES
from adapters.openai_responses.client.steering import RESPONSES_STEERING, ResponsesSteering
from adapters.openai_responses.client.stored_history import missing_entries
from adapters.openai_responses.client.stored_queries import stored_query
from adapters.openai_responses.client.stream import ResponsesStreamEncoder
from adapters.openai_responses.response_models import InputTokenCount, ResponseErrorBody
from adapters.openai_responses.turn_items import encode_turn
from gateway.core.conversation import Conversation, JsonObject, Turn
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


class OpenAIResponsesDialect:
    """The dialect of OpenAI's Responses API: what Codex speaks, and newer SDKs by default."""

    name: ClassVar[str] = DIALECT
    routes: ClassVar[tuple[Route, ...]] = ROUTES
    key_places: ClassVar[tuple[KeyPlace, ...]] = (KeyPlace(b"authorization", "Bearer"),)
    paths: ClassVar[FieldPaths] = PATHS
    signs: ClassVar[frozenset[str]] = frozenset(
        {f"input[].type={kind}" for kind in ("message", "reasoning", *CALL_KINDS, *OUTPUT_KINDS)}
    )
    request_id_headers: ClassVar[tuple[bytes, ...]] = ()
    error_type: ClassVar[type[msgspec.Struct]] = ResponseErrorBody
    explain_type: ClassVar[type[msgspec.Struct]] = ExplainResponsesRequest
    steering: ClassVar[ResponsesSteering] = RESPONSES_STEERING

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return decode_document(document, head.path)

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        return encode_turn(turn)

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        encoder = ResponsesStreamEncoder(request, head)
        feed_whole(encoder, events)
        if RETAINED in request.echo:
            return msgspec.json.encode(compacted_object(encoder.response(), request.echo[RETAINED]))
        return encoder.whole()

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> ResponsesStreamEncoder:
        return ResponsesStreamEncoder(request, head)

    def compaction_opening(self, request: ClientRequest) -> Sequence[Event]:
        return compaction_opening(request.echo)

    def without_request(self, conversation: Conversation) -> Conversation:
        return without_request(conversation)

    def compaction_events(self, request: ClientRequest, sealed: str, text: str) -> Sequence[Event]:
        return compaction_events(request.echo, sealed)

    def missing_entries(self, document: Document) -> Sequence[str]:
        return missing_entries(document)

    def stored_query(self, route: Route, head: RequestHead, name: str) -> StoredQuery:
        return stored_query(route, head, name)

    read_event = staticmethod(websocket.read_event)
    event_texts = staticmethod(websocket.event_texts)
    with_headers = staticmethod(websocket.with_headers)
    error_text = staticmethod(websocket.error_text)

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return encode_error(error)

    def encode_models(self, models: ListedModels) -> bytes:
        return encode_models(models)

    def encode_model(self, model: ModelInfo) -> bytes:
        return encode_model(model)

    def encode_count(self, tokens: int) -> bytes:
        return msgspec.json.encode(InputTokenCount(input_tokens=tokens))

    def example(self, model: str) -> JsonObject:
        return {"model": model, "input": "Hello"}
