"""Lists the rules that several providers have in common."""

from collections.abc import Mapping
from typing import Final

from gateway.providers.messages_rules import MessagesRules
from gateway.providers.profile import Alphabet
from gateway.providers.request_rules import Range, StopRules, ThinkingRules
from gateway.providers.tool_rules import ToolRules

OPENAI_NAMES: Final = Alphabet(characters="A-Za-z0-9_-", longest=64)
PDF: Final = ("application/pdf",)
NO_STRICT: Final = ToolRules(most_strict=0)
# "function parameters is empty".
WITH_PARAMETERS: Final = ToolRules(parameters="required")
# Servers of the Messages API that check no signature: DeepSeek, Kimi and MiniMax want their thinking back, without one.
ANY_THINKING: Final = MessagesRules()

PENALTIES: Final = ("presence_penalty", "frequency_penalty")
# Fields of OpenAI's bookkeeping and of its own models, which others refuse by name.
OPENAI_FIELDS: Final = ("prompt_cache_options", "prompt_cache_retention", "safety_identifier", "store", "verbosity")
# "max_tokens must be at least 1".
LIMIT: Final = {"max_tokens": Range(1)}
TO_ONE: Final = {"temperature": Range(0, 1)}
FOUR_STOPS: Final = StopRules(4)
NO_STOPS: Final = StopRules(0)
TO_XHIGH: Final = ("low", "medium", "high", "xhigh")
ONLY_EFFORT: Final = {"reasoning_effort": "none"}
TYPED_ON: Final = {"thinking": {"type": "enabled"}}
TYPED_OFF: Final = {"thinking": {"type": "disabled"}}
NO_FORCED: Final = ("auto", "none")
WORDS: Final = ("auto", "none", "required")


def limit_to(most: int) -> Mapping[str, Range]:
    """Returns the range of the limit of an answer, in tokens."""
    return {"max_tokens": Range(1, most)}


def by_effort(*efforts: str, default: bool = True) -> ThinkingRules:
    """Returns the rules of models whose effort alone says how much they think, and by `none` that they do not."""
    return ThinkingRules(efforts=efforts, off=ONLY_EFFORT if "none" in efforts else None, default=default)
