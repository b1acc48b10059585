"""Encodes token counts as the usage object, and decodes them: `input_tokens` leaves out what a prompt cache holds."""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts, usage_part
from gateway.wires.token_count import token_count

_PROMPT: Final = "input_tokens"
_READ: Final = "cache_read_input_tokens"
_WRITTEN: Final = "cache_creation_input_tokens"
_ANSWER: Final = "output_tokens"
_DETAILS: Final = "output_tokens_details"
_THOUGHT: Final = "thinking_tokens"
# Of an answer whose backend and whose gateway have counted nothing.
UNCOUNTED: Final = UsageReport()
# Clients read them without a look.
_REQUIRED: Final = (_PROMPT, _ANSWER)
# For a message that began before its prompt was counted.
WHOLE: Final = (_PROMPT, _READ, _WRITTEN, _ANSWER)


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
        _PROMPT: max(prompt - read - written, 0),
        _WRITTEN: written,
        _READ: read,
        _ANSWER: completion,
    }
    if thought := usage_part(usage, "reasoning_tokens"):
        counts[_DETAILS] = {_THOUGHT: thought}
    return counts


class TokenCounts:
    """Holds the counts of one response. They are cumulative: a later one replaces an earlier one of the same name."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, usage: Json) -> None:
        """Adds a `usage` object. Missing, null and impossible counts change nothing."""
        if not isinstance(usage, dict):
            return
        details = usage.get(_DETAILS)
        for fields in (usage, details if isinstance(details, dict) else {}):
            for name, value in fields.items():
                if (count := token_count(value)) is not None:
                    self._counts[name] = count

    def report(self, *, ended: bool) -> UsageReport | None:
        """Returns the counts: those of the prompt alone until the response has `ended`. None: there are none."""
        counts = self._counts
        uncached = counts.get(_PROMPT)
        prompt = None if uncached is None else uncached + counts.get(_READ, 0) + counts.get(_WRITTEN, 0)
        completion = counts.get(_ANSWER) if ended else None
        if prompt is None and completion is None:
            return None
        return UsageReport(prompt, completion, extra=self._details())

    def _details(self) -> JsonObject:
        """Returns the parts of both counts under their chat completions names."""
        prompt = self._named({_READ: "cached_tokens", _WRITTEN: "cache_write_tokens"})
        completion = self._named({_THOUGHT: "reasoning_tokens"})
        details: dict[str, Json] = {}
        if prompt:
            details["prompt_tokens_details"] = prompt
        if completion:
            details["completion_tokens_details"] = completion
        return details or EMPTY

    def _named(self, names: dict[str, str]) -> dict[str, Json]:
        """Returns the counts that were reported: a cache of which nothing was read is another thing than none."""
        return {name: self._counts[count] for count, name in names.items() if count in self._counts}
