"""Combines the token counts that the messages of one response report."""

from operator import add
from typing import Final, Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import astuple

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.wires.token_count import token_count

# How later counts combine with those before them: the last known of each, their sum, or the larger ones.
CountsMode: TypeAlias = Literal["last", "sum", "max"]


class Counts(msgspec.Struct, frozen=True):
    """Token counts of one message, or of several that were combined. 0: none is known. `answer`: the completion without
    its reasoning, of a backend that counts that apart."""

    prompt: int = 0
    completion: int = 0
    total: int = 0
    reasoning: int = 0
    cached: int = 0
    answer: int = 0

    def combined(self, other: "Counts", mode: CountsMode) -> "Counts":
        """Returns these counts with later ones."""
        match mode:
            case "sum":
                return Counts(*map(add, astuple(self), astuple(other)))
            case "max":
                return Counts(*map(max, astuple(self), astuple(other)))
            case "last":
                # Each by its name: many backends report counts in every message.
                return Counts(
                    other.prompt or self.prompt,
                    other.completion or self.completion,
                    other.total or self.total,
                    other.reasoning or self.reasoning,
                    other.cached or self.cached,
                    other.answer or self.answer,
                )
            case _:
                assert_never(mode)

    def report(self) -> UsageReport | None:
        """Returns the counts as an event; None: none of them is possible."""
        prompt, completion, total, reasoning, cached, answer = [token_count(getattr(self, name)) for name in COUNTS]
        completion = completion or (answer or 0) + (reasoning or 0)
        total = total or (prompt + completion if prompt and completion else 0)
        extra: dict[str, Json] = {}
        if cached:
            extra["prompt_tokens_details"] = {"cached_tokens": cached}
        if reasoning:
            extra["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        if not (prompt or completion or total or extra):
            return None
        return UsageReport(prompt or None, completion or None, total or None, extra=extra)


COUNTS: Final = Counts.__struct_fields__
NO_COUNTS: Final = Counts()
