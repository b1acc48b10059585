"""Decodes the usage object of a response."""

from typing import Final

from adapters.token_count import token_count
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import UsageReport

_COUNTS: Final = frozenset({"input_tokens", "output_tokens", "total_tokens"})
# The names of the details in the words of the core, which are those of chat completions.
_DETAILS: Final = {
    "input_tokens_details": "prompt_tokens_details",
    "output_tokens_details": "completion_tokens_details",
}


def decode_usage(usage: JsonObject) -> UsageReport:
    """Decode the counts. `extra` has the details, and all other fields under their own names."""
    extra: dict[str, Json] = {
        _DETAILS.get(name, name): value for name, value in usage.items() if name not in _COUNTS and value is not None
    }
    return UsageReport(
        token_count(usage.get("input_tokens")),
        token_count(usage.get("output_tokens")),
        token_count(usage.get("total_tokens")),
        extra=extra or EMPTY,
    )
