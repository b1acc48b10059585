"""Reads a number of tokens as backends write it."""

from gateway.core.conversation import Json


def token_count(value: Json) -> int | None:
    """Return a count. Missing, null and impossible counts become None."""
    if value is None or (type(value) is int and value >= 0):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
