"""Describes, as data, which fields a provider accepts beside the messages of a chat completions request."""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec


class ModelRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider demands for some of its models.

    - `models`: a regular expression for the whole name of each of them, without the vendor before the last slash.
    - `refused`: the fields that they refuse by name.
    - `effort_beside_tools`: the only `reasoning_effort` that they accept beside functions; null: any.
    - `default_effort`: that of a request without `reasoning_effort`; null: they reason.
    - `refused_while_reasoning`, `fixed_while_reasoning`: the fields that they refuse, and those of which they take one
      value, unless the effort is `none`.
    """

    models: str
    refused: tuple[str, ...] = ()
    effort_beside_tools: str | None = None
    default_effort: str | None = None
    refused_while_reasoning: tuple[str, ...] = ()
    fixed_while_reasoning: Mapping[str, float] = {}

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no regular expression."""
        try:
            re.compile(self.models)
        except re.error as error:
            raise ValueError(f"models must be a regular expression: {error}") from error

    def govern(self, model: str) -> bool:
        """Returns whether the rules are those of the model with this name."""
        return re.fullmatch(self.models, model.rpartition("/")[2]) is not None


class RequestRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider demands of the fields of a request, under their names in chat completions.

    The default demands nothing.

    - `limit`: the field for the limit of the answer, where the provider accepts one of the two; null: as it came.
    - `renamed`: the provider's own names of fields. The client's own value of that name comes first.
    - `refused`: the fields that the provider refuses by name.
    - `beside`: the fields that the provider accepts only where another one is true.
    - `values`: the only values that a field may have.
    - `no_tools`: `absent` where the provider refuses an empty list of functions, and a choice beside no functions.
    - `models`: more rules for models by their names; the first entry that matches applies.
    """

    limit: Literal["max_tokens", "max_completion_tokens"] | None = None
    renamed: Mapping[str, str] = {}
    refused: tuple[str, ...] = ()
    beside: Mapping[str, str] = {}
    values: Mapping[str, tuple[str, ...]] = {}
    no_tools: Literal["any", "absent"] = "any"
    models: tuple[ModelRules, ...] = ()

    def of_model(self, model: str) -> ModelRules | None:
        """Returns the further rules of the model with this name."""
        return next((rules for rules in self.models if rules.govern(model)), None)
