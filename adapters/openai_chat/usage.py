"""Decodes the backend's usage object as a UsageReport and ignores values that are not counts."""

from typing import Final

from adapters.openai_chat.passthrough import unknown_fields
from gateway.core.conversation import Json
from gateway.core.events import UsageReport

_COUNTS: Final = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})


def decode_usage(usage: dict[str, Json]) -> UsageReport:
    """Decode the counts. Missing, null and impossible counts become None."""
    return UsageReport(
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(usage.get("total_tokens")),
        False,
        unknown_fields(usage, _COUNTS),
    )


def _count(value: Json) -> int | None:
    if value is None or (type(value) is int and value >= 0):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
