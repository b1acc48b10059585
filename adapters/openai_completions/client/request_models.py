"""Defines the whole request of the API as msgspec types, for the published document."""

from typing import Annotated, Literal

import msgspec

from adapters.openai_completions.table import DEFAULT_MAX_TOKENS, CompletionFields
from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName, Whole


class CompletionRequest(CompletionFields, frozen=True, kw_only=True):
    """A completions request. Fields that are not listed are legal.

    For the published document only. It leaves out the values that only a raw model could honour.
    """

    model: ModelName
    prompt: str | Annotated[list[str], msgspec.Meta(min_length=1, max_length=1)]
    max_tokens: Whole | None = DEFAULT_MAX_TOKENS
    n: Literal[1] | None = None
    best_of: Literal[1] | None = None
    suffix: Literal[""] | None = None
    echo: Literal[False] | None = None
    logprobs: None = None
    logit_bias: Annotated[dict[str, float], msgspec.Meta(max_length=0)] | None = None


class CompletionExplainRequest(CompletionRequest, frozen=True, kw_only=True):
    """A completions request; without a model it is for the first one. `profile` and `settings` (policy keys) override
    those of the model."""

    model: OptionalModelName = msgspec.UNSET
    profile: str | None = None
    settings: FreeObject | None = None
