"""Defines the responses of the dialect as msgspec types, for the published document.

The encoders write responses field by field, with a backend's unknown fields among them; unlisted fields are legal.
Clients may rely on the listed fields.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.core.conversation import Violation
from gateway.core.notices import Notice
from gateway.dialects.usage import UsageNote


class AnswerCall(Struct, frozen=True):
    """A call of a function; `args` is an object."""

    id: str
    name: str
    args: dict[str, Any]


class AnswerPart(Struct, frozen=True, rename="camel"):
    """A piece of the answer: text, a thought (`thought` is true), or a call."""

    text: str | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    function_call: AnswerCall | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET


class AnswerContent(Struct, frozen=True):
    """The model's turn."""

    parts: list[AnswerPart]
    role: Literal["model"]


class Candidate(Struct, frozen=True, rename="camel"):
    """The response's only candidate. Of a stream, only the last chunk holds the finish reason."""

    content: AnswerContent
    index: Literal[0]
    finish_reason: str | UnsetType = UNSET


class UsageMetadata(Struct, frozen=True, rename="camel"):
    """Token counts; `dragoman.usage` says how reliable they are. `candidatesTokenCount` is without the thoughts."""

    prompt_token_count: int
    candidates_token_count: int
    total_token_count: int
    thoughts_token_count: int | UnsetType = UNSET
    cached_content_token_count: int | UnsetType = UNSET


class ContentNotes(Struct, frozen=True):
    """The gateway's notes about the response."""

    usage: UsageNote | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class GenerateContentResponse(Struct, frozen=True, rename="camel"):
    """A whole response, or a chunk of a stream with the parts that are new."""

    candidates: list[Candidate]
    model_version: str
    response_id: str
    usage_metadata: UsageMetadata | UnsetType = UNSET
    dragoman: ContentNotes | UnsetType = UNSET


class CountTokensResponse(Struct, frozen=True, rename="camel"):
    """The number of tokens of a request. It is an estimate."""

    total_tokens: int


class GeminiModel(Struct, frozen=True, rename="camel"):
    """A model that clients may request. `inputTokenLimit`, `outputTokenLimit` and `thinking` are absent where they are
    not known."""

    name: str
    display_name: str
    supported_generation_methods: list[str]
    input_token_limit: int | UnsetType = UNSET
    output_token_limit: int | UnsetType = UNSET
    thinking: bool | UnsetType = UNSET


class UnlistedGeminiModels(Struct, frozen=True):
    """The reason why some available models are not in the list."""

    missing: str


class GeminiModelList(Struct, frozen=True):
    """The models that clients may request. `dragoman` is present when a backend's own models are not among them."""

    models: list[GeminiModel]
    dragoman: UnlistedGeminiModels | UnsetType = UNSET


class ErrorStatus(Struct, frozen=True):
    """The error. `code` is the HTTP status; `details` hold the stable code (`reason`) and the faulty field.

    `violations` are the broken rules of the history.
    """

    code: int
    message: str
    status: str
    details: list[dict[str, Any]]
    violations: list[Violation] | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class GeminiErrorBody(Struct, frozen=True):
    """The body of every error response."""

    error: ErrorStatus
