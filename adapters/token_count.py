"""Reads a number of tokens as backends write it."""

from gateway.core.conversation import Json
from gateway.core.events import MOST_TOKENS


def token_count(value: Json) -> int | None:
    """Return a count. Missing, null and impossible counts become None."""
    if value is None or (type(value) is int and 0 <= value <= MOST_TOKENS):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
        return value
    return None
