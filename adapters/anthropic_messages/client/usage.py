"""Encodes token counts as the usage object, whose `input_tokens` leaves out those that a prompt cache holds."""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts, usage_part

# Of an answer whose backend and whose gateway have counted nothing.
UNCOUNTED: Final = UsageReport()


# Clients read them without a look.
_REQUIRED: Final = ("input_tokens", "output_tokens")


def usage_object(usage: UsageReport, own: Json = None, required: Sequence[str] = _REQUIRED) -> dict[str, Json]:
    """Returns the counts, all of them numbers: clients read them without a look. `usage_note` says where they are no
    report of the backend. `own` is the object that a backend of the same API wrote: it stays as it is, but for the
    counts that are `required`, where it has none, and for all counts where they are estimated."""
    counts = _counts(usage)
    if not isinstance(own, dict):
        return counts
    missing = {name: counts[name] for name in required if type(own.get(name)) is not int}
    return {**own, **missing, **(counts if usage.estimated else {})}


def _counts(usage: UsageReport) -> dict[str, Json]:
    prompt, completion, _ = token_counts(usage)
    read = usage_part(usage, "cached_tokens") or 0
    written = usage_part(usage, "cache_write_tokens") or 0
    counts: dict[str, Json] = {
        "input_tokens": max(prompt - read - written, 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": completion,
    }
    if thought := usage_part(usage, "reasoning_tokens"):
        counts["output_tokens_details"] = {"thinking_tokens": thought}
    return counts
