"""Decodes the usage object of a response."""

from typing import Final

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import UsageReport
from gateway.wires.token_count import token_count

# The names of the details in the words of the core, which are those of chat completions.
_DETAILS: Final = {
    "input_tokens_details": "prompt_tokens_details",
    "output_tokens_details": "completion_tokens_details",
}


def decode_usage(usage: JsonObject) -> UsageReport:
    """Decode the counts and their details."""
    extra: dict[str, Json] = {
        name: value for field, name in _DETAILS.items() if (value := usage.get(field)) is not None
    }
    return UsageReport(
        token_count(usage.get("input_tokens")),
        token_count(usage.get("output_tokens")),
        token_count(usage.get("total_tokens")),
        extra=extra or EMPTY,
    )
