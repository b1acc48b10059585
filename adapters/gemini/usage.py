"""Encodes token counts as `usageMetadata`.

The counts of the API are parts: `candidatesTokenCount` is without the tokens of the thoughts, which the canonical
completion includes.
"""

from typing import Final

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts, usage_part

# The fields of a chat completion's usage that the API has, too.
CACHED: Final = ("prompt_tokens_details", "cached_tokens")
REASONING: Final = ("completion_tokens_details", "reasoning_tokens")


def usage_object(usage: UsageReport) -> dict[str, Json]:
    """Returns the counts in the API's words."""
    prompt, completion, total = token_counts(usage)
    cached, thoughts = usage_part(usage, "cached_tokens"), usage_part(usage, "reasoning_tokens")
    counts: dict[str, Json] = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": max(completion - (thoughts or 0), 0),
        "totalTokenCount": total,
    }
    if cached is not None:
        counts["cachedContentTokenCount"] = cached
    if thoughts is not None:
        counts["thoughtsTokenCount"] = thoughts
    return counts
