"""Describes, as data, what a provider accepts of a request of Anthropic's Messages API."""

import re
from typing import Final, Literal

import msgspec

# `any`: thinking as its client sends it; `signed`: only with a signature of the provider; `bound`: only while all that
# stands before it is what it was when the provider made it.
Thinking = Literal["any", "signed", "bound"]


class MessagesModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider demands for some of its models.

    - `models`: a regular expression for the whole name of each of them, without the vendor before the last slash.
    - `thinking`: which thinking of earlier turns they accept.
    - `system`: `anywhere` where they accept a message of the role system in mid-conversation.
    - `sampling`: `one` where they accept either `temperature` or `top_p`, `default` where they accept no other
      temperature than 1, no `top_p` and no `top_k`.
    - `refused_thinking`: the types of the field `thinking` that they refuse.
    - `forced_tools`: whether they accept a `tool_choice` that forces a call: always, without thinking, or never.
    """

    models: str
    thinking: Thinking = "bound"
    system: Literal["anywhere", "first"] = "first"
    sampling: Literal["any", "one", "default"] = "any"
    refused_thinking: tuple[Literal["enabled", "disabled"], ...] = ()
    forced_tools: Literal["always", "without_thinking", "never"] = "without_thinking"

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no regular expression."""
        try:
            re.compile(self.models)
        except re.error as error:
            raise ValueError(f"models must be a regular expression: {error}") from error

    def govern(self, model: str) -> bool:
        """Returns whether the rules are those of the model with this name."""
        return re.fullmatch(self.models, model.rpartition("/")[2]) is not None


class MessagesRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider demands of a request of the Messages API. The default demands nothing.

    - `provider`: whose signatures stand in the thinking, as in `StateRule`.
    - `thinking`: which thinking of earlier turns it accepts, where `models` does not say it.
    - `blank_text`: `drop` where it refuses blocks of text with nothing but blanks.
    - `most_temperature`: the highest temperature.
    - `models`: more rules for models by their names; the first entry that matches applies.
    """

    provider: str = "anthropic"
    thinking: Thinking = "any"
    blank_text: Literal["keep", "drop"] = "keep"
    most_temperature: float | None = None
    models: tuple[MessagesModel, ...] = ()

    def of_model(self, model: str) -> MessagesModel | None:
        """Returns the further rules of the model with this name."""
        return next((rules for rules in self.models if rules.govern(model)), None)

    def thinking_of(self, model: str) -> Thinking:
        """Returns which thinking of earlier turns the model with this name accepts."""
        rules = self.of_model(model)
        return self.thinking if rules is None else rules.thinking


NO_DEMANDS: Final = MessagesRules()
