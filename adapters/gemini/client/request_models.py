"""Defines the whole requests of the API as msgspec types, for the published document."""

from typing import Annotated, Any

import msgspec

from adapters.gemini.table import RequestFields
from gateway.dialects.field_types import FreeObject

_CONTENTS = {
    "description": "The turns, oldest first.",
    "items": {
        "description": "A content as the API knows it: an object with `role` and `parts`. A content of any other shape "
        "is repaired with a notice, or refused if `repair` is `strict`.",
    },
}


class GenerateContentRequest(RequestFields, frozen=True, kw_only=True, rename="camel"):
    """A request to a model. Fields that are not listed are legal. For the published document only."""

    contents: Annotated[list[Any], msgspec.Meta(min_length=1, extra_json_schema=_CONTENTS)] | FreeObject


class CountContentTokensRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A request for a number of tokens: of contents, or of a whole request. For the published document only."""

    contents: list[Any] | FreeObject | None = None
    generate_content_request: GenerateContentRequest | None = None


class ExplainContentRequest(GenerateContentRequest, frozen=True, kw_only=True, rename="camel"):
    """A request with its model in `model`; without one it is for the first model. `profile` and `settings` (policy
    keys) override those of the model."""

    profile: str | None = None
    settings: FreeObject | None = None
