"""Encodes token counts as the usage object of the dialect."""

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts, usage_part


def usage_object(usage: UsageReport) -> dict[str, Json]:
    """Returns the three counts, and what part of them was cached or reasoning.

    Clients cannot read details without their number: a detail that no backend reported is 0.
    """
    prompt, completion, total = token_counts(usage)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage_part(usage, "cached_tokens") or 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": usage_part(usage, "reasoning_tokens") or 0},
        "total_tokens": total,
    }
