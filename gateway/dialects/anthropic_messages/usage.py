"""Encodes token counts as the usage object, whose `input_tokens` leaves out those that a prompt cache holds."""

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts

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
    read = _detail(usage, "prompt_tokens_details", "cached_tokens")
    written = _detail(usage, "prompt_tokens_details", "cache_write_tokens")
    counts: dict[str, Json] = {
        "input_tokens": max(prompt - read - written, 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": completion,
    }
    if thought := _detail(usage, "completion_tokens_details", "reasoning_tokens"):
        counts["output_tokens_details"] = {"thinking_tokens": thought}
    return counts


def _detail(usage: UsageReport, part: str, name: str) -> int:
    """Returns a count that is part of another one, by the names of chat completions; 0 where there is none."""
    details = usage.extra.get(part)
    count = details.get(name) if isinstance(details, Mapping) else None
    return count if type(count) is int and count > 0 else 0
