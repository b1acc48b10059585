"""Names what the Anthropic Messages dialect consists of: routes, decoder, encoders, and its published types."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import msgspec

from adapters.anthropic_messages import DIALECT
from adapters.anthropic_messages.client.compaction import compaction_events, compaction_opening, without_request
from adapters.anthropic_messages.client.decode import decode_document
from adapters.anthropic_messages.client.errors import encode_error
from adapters.anthropic_messages.client.message import encode_answer
from adapters.anthropic_messages.client.models import encode_model, encode_models
from adapters.anthropic_messages.client.paths import PATHS
from adapters.anthropic_messages.client.request_models import ExplainMessagesRequest
from adapters.anthropic_messages.client.routes import ROUTES
from adapters.anthropic_messages.client.stream import MessageStreamEncoder
from adapters.anthropic_messages.messages import encode_turn
from adapters.anthropic_messages.response_models import MessagesErrorBody
from gateway.core.answer import read_answer
from gateway.core.conversation import Conversation, JsonObject, Turn
from gateway.core.errors import GatewayError
from gateway.core.events import Event
from gateway.core.field_paths import FieldPaths
from gateway.core.tokens import prompt_tokens
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


class AnthropicMessagesDialect:
    """The dialect of Anthropic's Messages API, of Claude Code and of Anthropic's SDKs.

    A client sends its key as `x-api-key` or as a bearer token (`ANTHROPIC_AUTH_TOKEN`).
    """

    name: ClassVar[str] = DIALECT
    routes: ClassVar[tuple[Route, ...]] = ROUTES
    key_places: ClassVar[tuple[KeyPlace, ...]] = (KeyPlace(b"x-api-key"), KeyPlace(b"authorization", "Bearer"))
    paths: ClassVar[FieldPaths] = PATHS
    signs: ClassVar[frozenset[str]] = frozenset(
        {
            *("system", "stop_sequences", "tools[].input_schema"),
            *(
                f"messages[].content[].type={kind}"
                for kind in ("tool_use", "tool_result", "thinking", "redacted_thinking")
            ),
        }
    )
    request_id_headers: ClassVar[tuple[bytes, ...]] = (b"request-id",)
    error_type: ClassVar[type[msgspec.Struct]] = MessagesErrorBody
    explain_type: ClassVar[type[msgspec.Struct]] = ExplainMessagesRequest

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return decode_document(document, head)

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        return encode_turn(turn)

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        return encode_answer(read_answer(events), head, shows_thinking=_shows_thinking(request))

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> MessageStreamEncoder:
        estimate = partial(prompt_tokens, request.conversation)
        return MessageStreamEncoder(head, estimate, shows_thinking=_shows_thinking(request))

    def compaction_opening(self, request: ClientRequest) -> Sequence[Event]:
        return compaction_opening()

    def without_request(self, conversation: Conversation) -> Conversation:
        return without_request(conversation)

    def compaction_events(self, request: ClientRequest, sealed: str, text: str) -> Sequence[Event]:
        return compaction_events(request.echo, sealed, text)

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return encode_error(error, request_id)

    def encode_models(self, models: ListedModels) -> bytes:
        return encode_models(models)

    def encode_model(self, model: ModelInfo) -> bytes:
        return encode_model(model)

    def encode_count(self, tokens: int) -> bytes:
        return msgspec.json.encode({"input_tokens": tokens})

    def example(self, model: str) -> JsonObject:
        return {"model": model, "max_tokens": 1024, "messages": [{"role": "user", "content": "Hello"}]}


def _shows_thinking(request: ClientRequest) -> bool:
    """Returns whether the client wants the text of the thinking, and not only that the model thought."""
    match request.echo.get("thinking"):
        case {"display": "omitted"}:
            return False
        case _:
            return True
