"""Defines a completions request as a msgspec type. Unknown fields are legal.

Source: OpenAI, API reference, `POST /v1/completions`. The published OpenAPI document is made from these types.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from adapters.openai.fields import OpenAIFields
from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName, Whole

# The limit of tokens of a request that sets none.
DEFAULT_MAX_TOKENS: Final = 16


class CompletionFields(OpenAIFields, frozen=True):
    """A completions request. None: the client did not set the field. Any: the prompt has error texts of its own."""

    prompt: Any = None
    suffix: str | None = None
    echo: bool | None = None
    best_of: Whole | None = None
    logprobs: Whole | None = None
    user: str | None = None


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
