"""Defines the whole requests of the API as msgspec types, for the published document."""

from typing import Annotated, Any, Final

import msgspec

from adapters.anthropic_messages.table import MessagesFields
from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName, Whole

_MESSAGES: Final = {
    "contains": {"not": {"type": "null"}},
    "items": {
        "description": "A message as Anthropic knows it: an object with `role` and `content`. A message of any other "
        "shape is repaired with a notice, or refused if `repair` is `strict`; a directive of a wrong form is refused.",
    },
}


class CountTokensRequest(MessagesFields, frozen=True, kw_only=True):
    """A request whose tokens are counted. Fields that are not listed are legal.

    For the published document only. It also holds the fields that the reader checks with error texts of its own.
    """

    model: ModelName
    messages: Annotated[list[Any], msgspec.Meta(min_length=1, extra_json_schema=_MESSAGES)]


class MessagesRequest(CountTokensRequest, frozen=True, kw_only=True):
    """A request. Fields that are not listed are legal."""

    max_tokens: Whole


class ExplainMessagesRequest(CountTokensRequest, frozen=True, kw_only=True):
    """A request; without a model it is for the first one. `profile` and `settings` (policy keys) override those of the
    model."""

    model: OptionalModelName = msgspec.UNSET
    profile: str | None = None
    settings: FreeObject | None = None
