"""Tells which requests belong to one conversation."""

from collections.abc import Sequence
from hashlib import blake2b

from gateway.core.conversation import Turn


def conversation_name(turns: Sequence[Turn]) -> str:
    """Returns a short name, equal for requests whose first user messages are equal; empty without one. The system's
    text is no part of it: one that changes with every request is what a person looks for who compares them."""
    first = next((turn for turn in turns if turn.role == "user"), None)
    return "" if first is None else blake2b(repr(first.blocks).encode("utf-8", "replace"), digest_size=6).hexdigest()
