"""Defines a Responses request with its input, for the published OpenAPI document."""

from typing import Annotated, Any, Final, Literal

import msgspec

from adapters.openai_responses.table import RequestFields
from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName

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
