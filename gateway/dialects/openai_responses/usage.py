"""Encodes token counts as the usage object of the dialect."""

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts


def usage_object(usage: UsageReport) -> dict[str, Json]:
    """Returns the three counts, and what part of them was cached or reasoning.

    Clients cannot read details without their number: a detail that no backend reported is 0.
    """
    prompt, completion, total = token_counts(usage)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0, **_details(usage, "prompt_tokens_details", "cached_tokens")},
        "output_tokens": completion,
        "output_tokens_details": {
            "reasoning_tokens": 0,
            **_details(usage, "completion_tokens_details", "reasoning_tokens"),
        },
        "total_tokens": total,
    }


def _details(usage: UsageReport, field: str, name: str) -> dict[str, Json]:
    details = usage.extra.get(field)
    count = details.get(name) if isinstance(details, dict) else None
    return {name: count} if isinstance(count, int) else {}
