"""Cuts a reply by the limits of its request: stop sequences, and a number of tokens."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from gateway.demo.scripted_model.dialogue import PlannedCall, Reply
from gateway.demo.scripted_model.words import pieces

End: TypeAlias = Literal["stop", "calls", "length"]


class LimitedReply(msgspec.Struct, frozen=True):
    """A reply within its limits, the texts in pieces. `end` says what ended it: itself, its calls, or the limit."""

    text: tuple[str, ...]
    reasoning: tuple[str, ...]
    calls: tuple[PlannedCall, ...]
    end: End


def limit_reply(planned: Reply, text: str, stops: Iterable[str], max_tokens: int | None) -> LimitedReply:
    """Returns the reply with this text up to the first stop sequence in it. A text of more tokens than `max_tokens` is
    cut, and makes no calls."""
    for stop in filter(None, stops):
        text = text.partition(stop)[0]
    words, thought = tuple(pieces(text)), tuple(pieces(planned.reasoning))
    if max_tokens is not None and len(words) > max_tokens:
        return LimitedReply(words[:max_tokens], thought, (), "length")
    return LimitedReply(words, thought, planned.calls, "calls" if planned.calls else "stop")
