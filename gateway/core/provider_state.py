"""Reads and makes the opaque state of a provider that `extra` of a block carries: a signature, encrypted reasoning.

It stands below the provider's name, so that it returns to its maker and reaches no other provider:
`{"extra_content": {"google": {"thought_signature": "..."}}}` (the form of Google's OpenAI compatibility).
"""

from collections.abc import Mapping
from typing import Final

from gateway.core.conversation import EMPTY, JsonObject

STATE_FIELD: Final = "extra_content"


def provider_state(extra: JsonObject, provider: str) -> JsonObject:
    """Returns the state of this provider; empty where there is none."""
    if not extra:
        return EMPTY
    states = extra.get(STATE_FIELD)
    state = states.get(provider) if isinstance(states, Mapping) else None
    return state if isinstance(state, Mapping) else EMPTY


def with_provider_state(provider: str, state: JsonObject) -> JsonObject:
    """Returns the `extra` of a block with this state of this provider."""
    return {STATE_FIELD: {provider: dict(state)}}
