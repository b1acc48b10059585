"""Decodes `usageMetadata`. Its counts are parts of those of the protocol: the thoughts belong to the completion."""

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.gemini.usage import CACHED, OTHERS, REASONING


def decode_usage(usage: dict[str, Json], *, passes: bool) -> UsageReport:
    """Decode the counts. Missing, null and impossible counts become None. `passes`: with the fields that only a client
    of this dialect knows."""
    answered, thoughts = _count(usage.get("candidatesTokenCount")), _count(usage.get("thoughtsTokenCount"))
    cached = _count(usage.get("cachedContentTokenCount"))
    extra: dict[str, Json] = {}
    if cached is not None:
        extra[CACHED[0]] = {CACHED[1]: cached}
    if thoughts is not None:
        extra[REASONING[0]] = {REASONING[1]: thoughts}
    if passes:
        extra |= {name: value for name, value in usage.items() if name in OTHERS}
    completion = None if answered is None and thoughts is None else (answered or 0) + (thoughts or 0)
    prompt, total = _count(usage.get("promptTokenCount")), _count(usage.get("totalTokenCount"))
    return UsageReport(prompt, completion, total, False, extra)


def _count(value: Json) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
