"""Defines a Responses request without its input as msgspec types; items, and tools of unknown types, stay untyped.

Unknown fields are legal. The published OpenAPI document is made from these types.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName, Whole


class TextFormat(msgspec.Struct, frozen=True):
    """`text.format`. Of the type `json_schema`, the schema stands beside the type."""

    type: str
    name: str | None = None
    description: str | None = None
    schema: FreeObject | None = None
    strict: bool | None = None


class TextOptions(msgspec.Struct, frozen=True):
    """`text`: the form and the length of the answer."""

    format: TextFormat | None = None
    verbosity: str | None = None


class ReasoningOptions(msgspec.Struct, frozen=True):
    """`reasoning`. Summaries are not made here: clients get the reasoning that the backend shows."""

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None
    context: Any = None
    mode: Any = None


class ResponseStreamOptions(msgspec.Struct, frozen=True):
    """`stream_options`. Token counts are always sent."""

    include_obfuscation: bool | None = None


class RequestFields(msgspec.Struct, frozen=True):
    """A Responses request without its input. None: the client did not set the field."""

    model: str
    instructions: str | None = None
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    tools: list[Any] | None = None
    tool_choice: str | FreeObject | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: Whole | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    include: list[str] | None = None
    top_logprobs: Whole | None = None
    truncation: str | None = None
    max_tool_calls: Whole | None = None
    context_management: list[Any] | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: str | FreeObject | None = None
    prompt: FreeObject | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    user: str | None = None
    metadata: FreeObject | None = None
    client_metadata: FreeObject | None = None
    moderation: Any = None


_INPUT: Final = {
    "description": "A text, or items: messages, calls, outputs of calls, reasoning. An item of any other shape is "
    "repaired with a notice, or refused if `repair` is `strict`.",
    "anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {}}],
}


class ResponsesRequest(RequestFields, frozen=True, kw_only=True):
    """A Responses request. Fields that are not listed are legal.

    For the published document only. It also holds the fields that the reader checks with error texts of its own.
    """

    model: ModelName
    input: Annotated[Any, msgspec.Meta(extra_json_schema=_INPUT)]
    background: Literal[False] | None = None
    conversation: None = None
    prompt: None = None


class ExplainResponsesRequest(ResponsesRequest, frozen=True, kw_only=True):
    """A Responses request; without a model it is for the first one. `profile` and `settings` (policy keys) override
    those of the model."""

    model: OptionalModelName = msgspec.UNSET
    profile: str | None = None
    settings: FreeObject | None = None


TOOL_CHOICES: Final[Mapping[str, Literal["auto", "none", "required"]]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
}
