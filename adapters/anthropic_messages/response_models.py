"""Defines the responses of the dialect as msgspec types, for the published document.

The encoders write responses field by field; unlisted fields are legal. Clients may rely on the listed fields.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.core.conversation import Violation
from gateway.core.notices import Notice
from gateway.dialects.field_types import FreeObject
from gateway.dialects.usage import UsageNote


class ContentBlock(Struct, frozen=True):
    """A block of a message. `type` says which fields it has: text, thinking, redacted_thinking or tool_use, of a
    backend of the same API also others."""

    type: str
    text: str | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    signature: str | UnsetType = UNSET
    data: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    input: FreeObject | UnsetType = UNSET


class OutputTokensDetails(Struct, frozen=True):
    """A part of the output tokens."""

    thinking_tokens: int


class MessagesUsage(Struct, frozen=True):
    """Token counts. `input_tokens` leaves out those that a prompt cache holds; `dragoman.usage` says how reliable the
    counts are."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    output_tokens: int
    output_tokens_details: OutputTokensDetails | UnsetType = UNSET


class MessagesDiagnostics(Struct, frozen=True):
    """The gateway's notes about the response."""

    usage: UsageNote | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class Message(Struct, frozen=True):
    """A whole answer; in `message_start` one without content."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[ContentBlock]
    stop_reason: str | None
    stop_sequence: str | None
    usage: MessagesUsage
    dragoman: MessagesDiagnostics | UnsetType = UNSET


class MessageEvent(Struct, frozen=True):
    """An event of a stream. `type`, which is also the event's name, says which fields it has: message_start, ping,
    content_block_start, content_block_delta, content_block_stop, message_delta or message_stop."""

    type: str
    message: Message | UnsetType = UNSET
    index: int | UnsetType = UNSET
    content_block: ContentBlock | UnsetType = UNSET
    delta: FreeObject | UnsetType = UNSET
    usage: MessagesUsage | UnsetType = UNSET
    dragoman: MessagesDiagnostics | UnsetType = UNSET


class TokenCount(Struct, frozen=True):
    """The estimated tokens of a request."""

    input_tokens: int


class MessagesModel(Struct, frozen=True, kw_only=True):
    """A model that clients may request. `created_at` is the gateway's own start. `max_input_tokens`, `max_tokens` and a
    capability are absent where they are not known."""

    type: Literal["model"]
    id: str
    display_name: str
    created_at: str
    capabilities: dict[str, Any]
    max_input_tokens: int | UnsetType = UNSET
    max_tokens: int | UnsetType = UNSET


class MissingModels(Struct, frozen=True):
    """The reason why some available models are not in the list."""

    missing: str


class MessagesModelList(Struct, frozen=True, kw_only=True):
    """The models that clients may request, all on one page."""

    data: list[MessagesModel]
    has_more: Literal[False]
    first_id: str | None
    last_id: str | None
    dragoman: MissingModels | UnsetType = UNSET


class MessagesErrorObject(Struct, frozen=True):
    """The error. `code` is stable and meant for programs, `message` for people; `param` names the faulty field.

    `violations` are the broken rules of the history.
    """

    type: str
    message: str
    param: str | None
    code: str | None
    details: dict[str, Any] | UnsetType = UNSET
    violations: list[Violation] | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class MessagesErrorBody(Struct, frozen=True):
    """The body of every error response, and the data of the event that ends a failed stream."""

    type: Literal["error"]
    error: MessagesErrorObject
    request_id: str | None
