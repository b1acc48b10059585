"""Describes, as data, which fields a provider accepts beside the messages of a chat completions request."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from gateway.providers.cache_rules import CacheRules

# How much a model is to think, by the words of clients; `default` is one of Groq's.
_RANKS: Final = {"none": 0, "minimal": 1, "low": 2, "medium": 3, "default": 3, "high": 4, "xhigh": 5, "max": 6}
EFFORTS: Final = tuple([word for word in _RANKS if word != "default"])
OFF: Final = "none"

# A `tool_choice`, whose object names one function.
Choice: TypeAlias = Literal["auto", "none", "required", "named"]


def nearest_effort(asked: str, accepted: Sequence[str]) -> str:
    """Returns the accepted effort that is nearest to the one asked for, which is one of EFFORTS: of two equally near
    ones `high`, else the first. `none` stands only for itself, unless nothing else is accepted."""
    if asked in accepted:
        return asked
    thinking = [word for word in accepted if word != OFF] or accepted
    return min(thinking, key=lambda word: (abs(_RANKS.get(word, 3) - _RANKS[asked]), word != "high"))


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The least and the greatest value of a number; null: no such limit."""

    least: float | None = None
    greatest: float | None = None


class StopRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The stop sequences that a provider accepts: how many (null: any number), of how many bytes at most, and whether
    one may be of nothing but blanks."""

    most: int | None = None
    longest: int | None = None
    blank: bool = True

    def accepted(self, sequences: Sequence[str]) -> list[str]:
        """Returns those that the provider accepts, each once."""
        found = [
            one
            for one in dict.fromkeys(sequences)
            if (one.strip() or (one and self.blank)) and (self.longest is None or len(one.encode()) <= self.longest)
        ]
        return found[: self.most]


class ThinkingRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How models are told how much to think.

    - `efforts`: the values of `reasoning_effort` that they accept; empty: the field is refused; null: any.
    - `on`, `off`: the fields that switch thinking on and off. `off` null: it cannot be off.
    - `default`: whether they think in a request that says nothing of it.
    - `streamed`: they think only in a streamed request, and refuse another one that does not switch it off.
    """

    efforts: tuple[str, ...] | None = None
    on: Mapping[str, Any] = {}  # JSON
    off: Mapping[str, Any] | None = None  # JSON
    default: bool = True
    streamed: bool = False


class FieldRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a provider demands for all or some of its models.

    - `refused`: the fields that are refused by name.
    - `fixed`: the fields of which one value is accepted.
    - `ranges`: the numbers that a field may have; `max_tokens` stands for the limit under each name. A limit below 1
      asks for none.
    - `exclusive`: pairs of fields of which the second one is refused beside the first.
    - `stops`: the stop sequences that are accepted. The gateway ends the answer at the others.
    - `choices`, `choices_while_thinking`: the forms of `tool_choice` that are accepted; null: any.
    - `thinking`: how thinking is switched; null: as the client wrote it.
    """

    refused: tuple[str, ...] = ()
    fixed: Mapping[str, float] = {}
    ranges: Mapping[str, Range] = {}
    exclusive: tuple[tuple[str, str], ...] = ()
    stops: StopRules | None = None
    choices: tuple[Choice, ...] | None = None
    choices_while_thinking: tuple[Choice, ...] | None = None
    thinking: ThinkingRules | None = None


class ModelRules(FieldRules, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a provider demands for some of its models.

    - `models`: a regular expression for the whole name of each of them, without the vendor before the last slash.
    - `effort_beside_tools`: the only `reasoning_effort` that they accept beside functions; null: any.
    - `default_effort`: that of a request without `reasoning_effort`; null: they reason.
    - `refused_while_reasoning`, `fixed_while_reasoning`: the fields that they refuse, and those of which they take one
      value, unless the effort is `none`.
    """

    models: str
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


class RequestRules(FieldRules, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a provider demands of the fields of a request, under their names in chat completions.

    The default demands nothing. What is said of all models holds for each of them, unless `models` say it anew; the
    refused fields, ranges and exclusive pairs of both hold together.

    - `limit`: the field for the limit of the answer, where the provider accepts one of the two; null: as it came.
    - `renamed`: the provider's own names of fields. The client's own value of that name comes first.
    - `beside`: the fields that the provider accepts only where another one is true.
    - `values`: the only values that a field may have.
    - `no_tools`: `absent` where the provider refuses an empty list of functions, and a choice beside no functions.
    - `models`: more rules for models by their names; the first entry that matches applies.
    - `cache`: by which marks a request says what of the prompt to keep in a cache; null: by none.
    """

    limit: Literal["max_tokens", "max_completion_tokens"] | None = None
    renamed: Mapping[str, str] = {}
    beside: Mapping[str, str] = {}
    values: Mapping[str, tuple[str, ...]] = {}
    no_tools: Literal["any", "absent"] = "any"
    models: tuple[ModelRules, ...] = ()
    cache: CacheRules | None = None

    def of_model(self, model: str) -> ModelRules | None:
        """Returns the further rules of the model with this name."""
        return next((rules for rules in self.models if rules.govern(model)), None)

    def stops_of(self, model: str) -> StopRules | None:
        """Returns the stop sequences that the model with this name accepts; None: any."""
        rules = self.of_model(model)
        return self.stops if rules is None or rules.stops is None else rules.stops

    def refuse(self, name: str, model: str) -> bool:
        """Returns whether a field is refused by its name for the model."""
        rules = self.of_model(model)
        return name in self.refused or (rules is not None and name in rules.refused)
