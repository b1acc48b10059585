"""Collects what is known of one anchor: for each scope the kept state, unless two answers with other states had it."""

from collections.abc import Sequence
from typing import Final

import msgspec

# The version of the bytes; another one is read as absent.
VERSION: Final = 1
# The scopes of one anchor, the newest last. A conversation is rarely continued with more models.
MOST: Final = 8


class Variant(msgspec.Struct, frozen=True, array_like=True):
    """The state that an answer had in a scope. `state` is its key; None: two answers had different ones, so that
    neither is put back. `marks` recognise the state where a client carries it itself."""

    scope: bytes
    state: bytes | None
    marks: tuple[bytes, ...] = ()


class _Record(msgspec.Struct, frozen=True, array_like=True):
    variants: tuple[Variant, ...]
    version: int = VERSION


class Choice(msgspec.Struct, frozen=True):
    """What the anchors of one turn say. `variant` is the state to put back; `ambiguous`: there are two. `foreign` are
    the marks of states of other scopes that are not known in this one; `elsewhere`: only those are known."""

    anchors: tuple[bytes, ...] = ()
    variant: Variant | None = None
    ambiguous: bool = False
    foreign: frozenset[bytes] = frozenset()
    elsewhere: bool = False


def encode_variants(variants: Sequence[Variant]) -> bytes:
    """Returns the bytes of the variants of one anchor."""
    return msgspec.msgpack.encode(_Record(tuple(variants)))


def decode_variants(data: bytes) -> tuple[Variant, ...]:
    """Returns the variants in the bytes; none in those of another version or of something else."""
    try:
        record = msgspec.msgpack.decode(data, type=_Record)
    except msgspec.DecodeError:
        return ()
    return record.variants if record.version == VERSION else ()


def with_variant(variants: Sequence[Variant], new: Variant) -> tuple[Variant, ...]:
    """Returns the variants with one more. A second state in one scope makes the anchor ambiguous there."""
    others = [variant for variant in variants if variant.scope != new.scope]
    old = next((variant for variant in variants if variant.scope == new.scope), None)
    if old is not None and old.state != new.state:
        new = Variant(new.scope, None, tuple({*old.marks, *new.marks}))
    return (*others, new)[-MOST:]


def without_variant(variants: Sequence[Variant], dropped: Variant) -> tuple[Variant, ...]:
    """Returns the variants without one that its provider has refused; a newer one in its scope stays."""
    return tuple([variant for variant in variants if variant != dropped])


def choose(found: Sequence[tuple[bytes, Sequence[Variant]]], valid: bytes) -> Choice:
    """Returns what the anchors of a turn say for this scope: the first that knows one state decides."""
    variants = [variant for _, of_anchor in found for variant in of_anchor]
    own = [variant for variant in variants if variant.scope == valid]
    others = [variant for variant in variants if variant.scope != valid]
    known = {mark for variant in own for mark in variant.marks}
    return Choice(
        tuple([anchor for anchor, _ in found]),
        next((variant for variant in own if variant.state is not None), None),
        bool(own) and all(variant.state is None for variant in own),
        frozenset([mark for variant in others for mark in variant.marks if mark not in known]),
        bool(others) and not own,
    )
