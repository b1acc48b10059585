"""Defines the whole request of the API as a msgspec type, for the published document."""

from typing import Annotated, Any, Final

import msgspec

from adapters.gemini_interactions.table import RequestFields
from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName

_INPUT: Final = {
    "description": "A text, a content, or an array of contents or of steps. A step of any other shape is repaired with "
    "a notice, or refused if `repair` is `strict`.",
    "anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "minItems": 1, "items": {}}],
}


class InteractionRequest(RequestFields, frozen=True, kw_only=True):
    """A request to a model. Fields that are not listed are legal. For the published document only."""

    model: ModelName
    input: Annotated[Any, msgspec.Meta(extra_json_schema=_INPUT)]


class ExplainInteractionRequest(InteractionRequest, frozen=True, kw_only=True):
    """A request; without a model it is for the first one. `profile` and `settings` (policy keys) override those of the
    model."""

    model: OptionalModelName = msgspec.UNSET
    profile: str | None = None
    settings: FreeObject | None = None
