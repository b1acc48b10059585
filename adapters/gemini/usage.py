"""Encodes token counts as `usageMetadata`, and decodes them.

The counts of the API are parts: `candidatesTokenCount` is without the tokens of the thoughts, which the canonical
completion includes.
"""

from typing import Final

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts, usage_part
from gateway.wires.token_count import token_count

_PROMPT: Final = "promptTokenCount"
_ANSWER: Final = "candidatesTokenCount"
_TOTAL: Final = "totalTokenCount"
_CACHED: Final = "cachedContentTokenCount"
_THOUGHTS: Final = "thoughtsTokenCount"


def usage_object(usage: UsageReport) -> dict[str, Json]:
    """Returns the counts in the API's words."""
    prompt, completion, total = token_counts(usage)
    cached, thoughts = usage_part(usage, "cached_tokens"), usage_part(usage, "reasoning_tokens")
    counts: dict[str, Json] = {
        _PROMPT: prompt,
        _ANSWER: max(completion - (thoughts or 0), 0),
        _TOTAL: total,
    }
    if cached is not None:
        counts[_CACHED] = cached
    if thoughts is not None:
        counts[_THOUGHTS] = thoughts
    return counts


def decode_usage(usage: dict[str, Json]) -> UsageReport:
    """Returns the counts. Missing, null and impossible counts become None."""
    answered, thoughts = token_count(usage.get(_ANSWER)), token_count(usage.get(_THOUGHTS))
    cached = token_count(usage.get(_CACHED))
    extra: dict[str, Json] = {}
    if cached is not None:
        extra["prompt_tokens_details"] = {"cached_tokens": cached}
    if thoughts is not None:
        extra["completion_tokens_details"] = {"reasoning_tokens": thoughts}
    completion = None if answered is None and thoughts is None else (answered or 0) + (thoughts or 0)
    prompt, total = token_count(usage.get(_PROMPT)), token_count(usage.get(_TOTAL))
    return UsageReport(prompt, completion, total, False, extra)
