"""The backend's usage object in, a UsageReport out; what is no count is not taken for one."""

from typing import Final

from adapters.openai_chat.unknown import unknown_fields
from gateway.events import UsageReport
from gateway.types import Json

_COUNTS: Final = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})


def decode_usage(usage: dict[str, Json]) -> UsageReport:
    """Missing, null and impossible counts become None."""
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
