"""Defines the state of one answer as a value, and its bytes in a store."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.core.conversation import Json, JsonObject, Reasoning, Turn
from gateway.core.provider_state import OPAQUE_FIELDS, label_of, provider_state, with_provider_state
from gateway.core.state_rule import StateRule
from gateway.core.thoughts import Thought

# The version of the bytes; another one is read as absent. Before 2, a state had no label of its backend.
VERSION: Final = 2


class TurnState(msgspec.Struct, frozen=True, array_like=True):
    """What of an answer must return: its pieces of reasoning, the state of each of its calls (empty: none), and fields
    of its message."""

    thoughts: tuple[Thought, ...] = ()
    calls: tuple[dict[str, Any], ...] = ()
    fields: dict[str, Any] = {}
    version: int = VERSION

    def __bool__(self) -> bool:
        return bool(self.thoughts or self.fields or any(self.calls))


def encode_state(state: TurnState) -> bytes:
    """Returns the bytes of a state."""
    return msgspec.msgpack.encode(state)


def decode_state(data: bytes) -> TurnState | None:
    """Returns the state in the bytes; None for bytes of another version, or of something else."""
    try:
        state = msgspec.msgpack.decode(data, type=TurnState)
    except msgspec.DecodeError:
        return None
    return state if state.version == VERSION else None


def carried_states(turn: Turn, rule: StateRule) -> Iterator[Json]:
    """Yields the states of the rule's provider that the client's own turn carries."""
    if rule.provider is None:
        return
    extras = [block.extra for block in turn.blocks if isinstance(block, Reasoning)]
    for extra in (turn.extra, *extras, *[call.extra for call in turn.calls]):
        if state := provider_state(extra, rule.provider):
            yield _opaque(state)


def kept_states(state: TurnState, rule: StateRule) -> Iterator[Json]:
    """Yields the states of the rule's provider in a kept state."""
    if rule.provider is None:
        return
    for extra in (*[thought.extra for thought in state.thoughts], *state.calls):
        if found := provider_state(extra, rule.provider):
            yield _opaque(found)


def _opaque(state: JsonObject) -> Json:
    """Returns what its maker verifies, without a label; a client's dialect may leave other fields out."""
    opaque = {name: _unlabelled(state[name]) for name in OPAQUE_FIELDS if name in state}
    return opaque or dict(state)


def _unlabelled(state: Json) -> Json:
    return state[len(label_of(state)) :] if isinstance(state, str) else state


def only_state(extra: JsonObject, provider: str | None) -> dict[str, Any]:
    """Returns the part of `extra` that holds the provider's state."""
    if provider is None:
        return {}
    state = provider_state(extra, provider)
    return {**with_provider_state(provider, state)} if state else {}
