"""Converts the token counts of the Messages API, where `input_tokens` leaves out what the prompt cache holds."""

from typing import Final

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import UsageReport
from gateway.wires.token_count import token_count

_READ: Final = "cache_read_input_tokens"
_WRITTEN: Final = "cache_creation_input_tokens"


class TokenCounts:
    """Holds the counts of one response. They are cumulative: a later one replaces an earlier one of the same name."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        # What was reported: a later report of the same count says so even when there are none.
        self._reported: set[str] = set()

    def add(self, usage: Json) -> None:
        """Add a `usage` object. Missing, null and impossible counts change nothing."""
        if not isinstance(usage, dict):
            return
        details = usage.get("output_tokens_details")
        for fields in (usage, details if isinstance(details, dict) else {}):
            for name, value in fields.items():
                if (count := token_count(value)) is not None:
                    self._counts[name] = count

    def report(self, *, ended: bool) -> UsageReport | None:
        """Return the counts: those of the prompt alone until the response has `ended`. None: there are none."""
        counts = self._counts
        uncached = counts.get("input_tokens")
        prompt = None if uncached is None else uncached + counts.get(_READ, 0) + counts.get(_WRITTEN, 0)
        completion = counts.get("output_tokens") if ended else None
        if prompt is None and completion is None:
            return None
        return UsageReport(prompt, completion, extra=self._details())

    def _details(self) -> JsonObject:
        """Return the parts of both counts under their chat completions names."""
        prompt = self._named({_READ: "cached_tokens", _WRITTEN: "cache_write_tokens"})
        completion = self._named({"thinking_tokens": "reasoning_tokens"})
        details: dict[str, Json] = {}
        if prompt:
            details["prompt_tokens_details"] = prompt
        if completion:
            details["completion_tokens_details"] = completion
        return details or EMPTY

    def _named(self, names: dict[str, str]) -> dict[str, Json]:
        found: dict[str, Json] = {
            name: self._counts[count]
            for count, name in names.items()
            if self._counts.get(count) or name in self._reported
        }
        self._reported |= found.keys()
        return found
