"""Tells which requests belong to one conversation: those whose first user messages are equal."""

from collections.abc import Sequence
from hashlib import blake2b

from gateway.core.conversation import Turn


def first_user_turn(turns: Sequence[Turn]) -> Turn | None:
    """Returns the first message of a user, or None."""
    return next((turn for turn in turns if turn.role == "user"), None)


def conversation_name(first: Turn | None) -> str:
    """Returns a short name for a first user message, equal for equal ones; empty for none. The system's text is no part
    of it: one that changes with every request is what a person looks for who compares them."""
    return "" if first is None else blake2b(repr(first.blocks).encode("utf-8", "replace"), digest_size=6).hexdigest()
