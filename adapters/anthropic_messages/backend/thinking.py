"""Encodes a client's reasoning effort as the fields of the API for thinking, where the request allows thinking.

Source: Anthropic, extended thinking, adaptive thinking, effort.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.anthropic_messages.backend.options import AnthropicMessagesOptions
from adapters.anthropic_messages.backend.turns import EncodedTurns
from adapters.anthropic_messages.table import EFFORTS
from gateway.core.conversation import EMPTY, Conversation, Json, JsonObject
from gateway.core.notices import Notice

_OFF: Final = "none"
# The share of the token limit that the budget of each effort gets.
_SHARES: Final[Mapping[str, float]] = {
    "minimal": 0.1,
    "low": 0.2,
    "medium": 0.5,
    "high": 0.8,
    "xhigh": 0.9,
    "max": 0.95,
}
_LEAST_BUDGET: Final = 1024


class ThinkingFields(msgspec.Struct, frozen=True):
    """`thinking`, and what `output_config` says of it."""

    mode: dict[str, Json] | None = None
    config: JsonObject = EMPTY


def thinking_fields(
    conversation: Conversation,
    options: AnthropicMessagesOptions,
    turns: EncodedTurns,
    limit: int,
    notices: list[Notice],
) -> ThinkingFields:
    """Returns the fields; none where the client set no effort. `limit` is that of the tokens of the response."""
    effort = conversation.params.get("reasoning_effort")
    if effort is None:
        return ThinkingFields()
    if effort == _OFF:
        return ThinkingFields({"type": "disabled"})
    word = EFFORTS.words.get(effort) if isinstance(effort, str) else None
    reason = "its value is unknown" if word is None else _obstacle(conversation, options, turns, limit)
    if word is None or reason:
        detail = f"the backend gets no {conversation.paths.param('reasoning_effort')}: {reason}"
        notices.append(Notice("encode", "dropped", "EFFORT_NOT_SENT", detail, level="warning"))
        return ThinkingFields()
    if options.thinking == "effort":
        if word != effort:
            notices.append(_raised(conversation, f"output_config.effort {word}"))
        return ThinkingFields({"type": "adaptive"}, {"effort": word})
    budget = int(limit * _SHARES[str(effort)])
    if budget < _LEAST_BUDGET:
        budget = _LEAST_BUDGET
        notices.append(_raised(conversation, f"thinking.budget_tokens {budget}"))
    return ThinkingFields({"type": "enabled", "budget_tokens": budget})


def _raised(conversation: Conversation, sent: str) -> Notice:
    name, effort = conversation.paths.param("reasoning_effort"), conversation.params["reasoning_effort"]
    detail = f"{name} {effort} is sent as {sent}, the least that the API has"
    return Notice("encode", "changed", "EFFORT_CHANGED", detail, level="debug")


def _obstacle(conversation: Conversation, options: AnthropicMessagesOptions, turns: EncodedTurns, limit: int) -> str:
    """Returns why the request does not allow thinking; empty where it does."""
    if conversation.tools and conversation.tool_choice not in ("auto", "none"):
        return "a forced tool call allows no thinking"
    if options.thinking == "effort":
        return ""
    if limit <= _LEAST_BUDGET:
        return f"thinking takes more than {_LEAST_BUDGET} tokens"
    return "" if turns.thinks else "the history has calls without the thinking before them"
