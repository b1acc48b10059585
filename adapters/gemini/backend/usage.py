"""Decodes `usageMetadata`. Its counts are parts of those of the protocol: the thoughts belong to the completion."""

from adapters.gemini.usage import CACHED, REASONING
from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.wires.token_count import token_count


def decode_usage(usage: dict[str, Json]) -> UsageReport:
    """Decode the counts. Missing, null and impossible counts become None."""
    answered, thoughts = token_count(usage.get("candidatesTokenCount")), token_count(usage.get("thoughtsTokenCount"))
    cached = token_count(usage.get("cachedContentTokenCount"))
    extra: dict[str, Json] = {}
    if cached is not None:
        extra[CACHED[0]] = {CACHED[1]: cached}
    if thoughts is not None:
        extra[REASONING[0]] = {REASONING[1]: thoughts}
    completion = None if answered is None and thoughts is None else (answered or 0) + (thoughts or 0)
    prompt, total = token_count(usage.get("promptTokenCount")), token_count(usage.get("totalTokenCount"))
    return UsageReport(prompt, completion, total, False, extra)
