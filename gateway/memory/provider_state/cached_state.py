"""Defines what is stored of the state of answers: the state of one answer, and for one lookup key the states that
answers had in each scope."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from gateway.core.conversation import Json, JsonObject, Reasoning, Turn
from gateway.core.provider_state import OPAQUE_FIELDS, label_of, provider_state, with_provider_state
from gateway.core.state_rule import StateRule
from gateway.core.thoughts import Thought

# The version of the bytes; another one is read as absent. Before 2, a state had no label of its backend.
STATE_VERSION: Final = 2


class TurnState(msgspec.Struct, frozen=True, array_like=True):
    """What of an answer must return: its pieces of reasoning, the state of each of its calls (empty: none), and fields
    of its message."""

    thoughts: tuple[Thought, ...] = ()
    calls: tuple[dict[str, Any], ...] = ()
    fields: dict[str, Any] = {}
    version: int = STATE_VERSION

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
    return state if state.version == STATE_VERSION else None


def carried_states(turn: Turn, rule: StateRule) -> Iterator[Json]:
    """Yields the states of the rule's provider that the client's own turn carries."""
    if rule.provider is None:
        return
    extras = [block.extra for block in turn.blocks if isinstance(block, Reasoning)]
    for extra in (turn.extra, *extras, *[call.extra for call in turn.calls]):
        if state := provider_state(extra, rule.provider):
            yield _opaque(state)


def cached_states(state: TurnState, rule: StateRule) -> Iterator[Json]:
    """Yields the states of the rule's provider in a kept state."""
    if rule.provider is None:
        return
    for extra in (*[thought.extra for thought in state.thoughts], *state.calls):
        if found := provider_state(extra, rule.provider):
            yield _opaque(found)


def _opaque(state: JsonObject) -> Json:
    """Returns the part of a state that its maker verifies, without a label; a client's dialect may leave other fields
    out."""
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


# The version of the bytes; another one is read as absent.
VARIANTS_VERSION: Final = 1
# The scopes of one lookup key, the newest last. A conversation is rarely continued with more models.
MOST: Final = 8


class Variant(msgspec.Struct, frozen=True, array_like=True):
    """The state that an answer had in a scope. `state` is its key; None: two answers had different ones, so that
    neither is put back. `digests` recognise the state where a client carries it itself."""

    scope: bytes
    state: bytes | None
    digests: tuple[bytes, ...] = ()


class _Record(msgspec.Struct, frozen=True, array_like=True):
    variants: tuple[Variant, ...]
    version: int = VARIANTS_VERSION


class LookupResult(msgspec.Struct, frozen=True):
    """The states that the lookup keys of one turn lead to. `variant` is the state to put back; `ambiguous`: there are
    two. `foreign` are the digests of states of other scopes that are not known in this one; `elsewhere`: only those are
    known."""

    keys: tuple[bytes, ...] = ()
    variant: Variant | None = None
    ambiguous: bool = False
    foreign: frozenset[bytes] = frozenset()
    elsewhere: bool = False


def encode_variants(variants: Sequence[Variant]) -> bytes:
    """Returns the bytes of the variants of one lookup key."""
    return msgspec.msgpack.encode(_Record(tuple(variants)))


def decode_variants(data: bytes) -> tuple[Variant, ...]:
    """Returns the variants in the bytes; none in those of another version or of something else."""
    try:
        record = msgspec.msgpack.decode(data, type=_Record)
    except msgspec.DecodeError:
        return ()
    return record.variants if record.version == VARIANTS_VERSION else ()


def with_variant(variants: Sequence[Variant], new: Variant) -> tuple[Variant, ...]:
    """Returns the variants with one more. A second state in one scope makes the lookup key ambiguous there."""
    others = [variant for variant in variants if variant.scope != new.scope]
    old = next((variant for variant in variants if variant.scope == new.scope), None)
    if old is not None and old.state != new.state:
        new = Variant(new.scope, None, tuple({*old.digests, *new.digests}))
    return (*others, new)[-MOST:]


def without_variant(variants: Sequence[Variant], dropped: Variant) -> tuple[Variant, ...]:
    """Returns the variants without one that its provider has refused; a newer one in its scope stays."""
    return tuple([variant for variant in variants if variant != dropped])


def lookup_result(found: Sequence[tuple[bytes, Sequence[Variant]]], valid: bytes) -> LookupResult:
    """Returns the state of a turn in this scope by its lookup keys: the first that knows one state decides."""
    variants = [variant for _, of_key in found for variant in of_key]
    own = [variant for variant in variants if variant.scope == valid]
    others = [variant for variant in variants if variant.scope != valid]
    known = {digest for variant in own for digest in variant.digests}
    return LookupResult(
        tuple([key for key, _ in found]),
        next((variant for variant in own if variant.state is not None), None),
        bool(own) and all(variant.state is None for variant in own),
        frozenset([digest for variant in others for digest in variant.digests if digest not in known]),
        bool(others) and not own,
    )
