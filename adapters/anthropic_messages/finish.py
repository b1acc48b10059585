"""Encodes why an answer ended, as the fields of the message that say so."""

from collections.abc import Mapping
from typing import Final

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Finish, Reason

_STOP_REASONS: Final[Mapping[Reason, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
# What each of the API's own words means.
MEANINGS: Final[Mapping[str, Reason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "compaction": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def final_fields(finish: Finish, own: JsonObject = EMPTY) -> dict[str, Json]:
    """Returns the fields that say why the answer ended. `own` are those of a backend of the same API, whose word stays
    as it is, also a new one, unless the answer has ended for another reason: with a call, for instance."""
    word = own.get("stop_reason")
    if isinstance(word, str) and MEANINGS.get(word, finish.reason) == finish.reason:
        return {**own}
    sequence = finish.stop_sequence
    derived = "stop_sequence" if finish.reason == "stop" and sequence is not None else _STOP_REASONS[finish.reason]
    return {**own, "stop_reason": derived, "stop_sequence": sequence}
