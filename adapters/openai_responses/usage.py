"""Decodes and encodes the usage object of a response."""

from typing import Final

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import UsageReport
from gateway.dialects.usage import UsagePart, token_counts, usage_part
from gateway.wires.token_count import token_count

# The names of the details in the words of the core, which are those of chat completions.
_DETAILS: Final = {
    "input_tokens_details": "prompt_tokens_details",
    "output_tokens_details": "completion_tokens_details",
}

# What the published type requires of each count.
_INPUT: Final[tuple[UsagePart, ...]] = ("cached_tokens", "cache_write_tokens")
_OUTPUT: Final[tuple[UsagePart, ...]] = ("reasoning_tokens",)


def decode_usage(usage: JsonObject) -> UsageReport:
    """Decodes the counts and their details."""
    extra: dict[str, Json] = {
        name: value for field, name in _DETAILS.items() if (value := usage.get(field)) is not None
    }
    return UsageReport(
        token_count(usage.get("input_tokens")),
        token_count(usage.get("output_tokens")),
        token_count(usage.get("total_tokens")),
        extra=extra or EMPTY,
    )


def usage_object(usage: UsageReport, own: JsonObject = EMPTY) -> dict[str, Json]:
    """Returns the three counts, and what part of them was cached or reasoning, in the object that a backend of the same
    dialect wrote.

    Clients cannot read details without their number: a detail that no backend reported is 0.
    """
    prompt, completion, total = token_counts(usage)
    return {
        **own,
        "input_tokens": prompt,
        "input_tokens_details": _details(usage, own.get("input_tokens_details"), _INPUT),
        "output_tokens": completion,
        "output_tokens_details": _details(usage, own.get("output_tokens_details"), _OUTPUT),
        "total_tokens": total,
    }


def _details(usage: UsageReport, own: Json, parts: tuple[UsagePart, ...]) -> dict[str, Json]:
    counted: dict[str, Json] = {part: usage_part(usage, part) or 0 for part in parts}
    return {**(own if isinstance(own, dict) else {}), **counted}
