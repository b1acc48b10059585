"""Builds the interaction object: its state, its steps and its token counts."""

from datetime import UTC, datetime
from typing import Final

from adapters.gemini_interactions.client.stored import STEPS, interaction_id
from adapters.gemini_interactions.table import PREVIOUS, STATUSES
from gateway.core.answer import merge_usage
from gateway.core.conversation import Json
from gateway.core.events import Reason, UsageReport
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.usage import token_counts, usage_part

# The API has no status of its own for it.
_FILTERED: Final = {"code": "content_filter", "message": "A content filter of the backend ended the answer."}


class GrowingInteraction:
    """The interaction as far as it is known: `begun` when the answer begins, `complete` when it ends.

    `steps` are those that are done, `notices` those for a client that asks for them. `previous` is the interaction that
    the request continues.
    """

    def __init__(self, head: AnswerHead, previous: Json) -> None:
        self.id = interaction_id(head.unique)
        self.steps: list[Json] = []
        self.notices: list[Notice] = []
        self._head = head
        self._previous: dict[str, Json] = {} if previous is None else {PREVIOUS: previous}
        self._stored = head.stored
        self._updated = head.created
        self._reason: Reason = "stop"
        self._usage: UsageReport | None = None

    @property
    def begun(self) -> dict[str, Json]:
        """Returns the object of an answer that has no end yet."""
        return self._object("in_progress")

    @property
    def ended(self) -> dict[str, Json]:
        """Returns the object of the complete answer without its steps, which a stream has sent."""
        said: dict[str, Json] = {}
        if self._reason == "content_filter":
            said["errors"] = [dict(_FILTERED)]
        if self._usage is not None:
            said["usage"] = usage_object(self._usage)
        if noted := dragoman_field(self._usage, self.notices if self._head.diagnostics else None):
            said["dragoman"] = noted
        return {**self._object(STATUSES.words[self._reason]), **said}

    def complete(self) -> dict[str, Json]:
        """Returns the object of the complete answer."""
        return {**self.ended, STEPS: self.steps}

    def finish(self, reason: Reason) -> None:
        """Sets the finish reason."""
        self._reason = reason
        self._updated = self._head.clock()

    def add_usage(self, usage: UsageReport) -> None:
        """Adds a report of token counts."""
        self._usage = merge_usage(self._usage, usage)

    def deny(self, notice: Notice) -> None:
        """The interaction is not stored."""
        self._stored = False
        self.notices.append(notice)

    def _object(self, status: str) -> dict[str, Json]:
        return {
            "id": self.id,
            "object": "interaction",
            "status": status,
            "model": self._head.model,
            "created": _time(self._head.created),
            "updated": _time(self._updated),
            "store": self._stored,
            **self._previous,
        }


def usage_object(usage: UsageReport) -> dict[str, Json]:
    """Returns the counts in the API's words: those of the answer are without the thoughts, which the canonical
    completion includes."""
    prompt, completion, total = token_counts(usage)
    cached, thoughts = usage_part(usage, "cached_tokens"), usage_part(usage, "reasoning_tokens")
    counts: dict[str, Json] = {
        "total_input_tokens": prompt,
        "total_output_tokens": max(completion - (thoughts or 0), 0),
        "total_tokens": total,
    }
    if thoughts is not None:
        counts["total_thought_tokens"] = thoughts
    if cached is not None:
        counts["total_cached_tokens"] = cached
    return counts


def _time(seconds: int) -> str:
    """Returns a Unix time in the form of ISO 8601 that the API has."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
