"""Encodes why an answer ended, as the fields of the message that say so, and decodes the word of a backend."""

from typing import Final

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Finish, Reason
from gateway.core.notices import Notice
from gateway.wires.table import Words

STOP_REASONS: Final[Words[Reason]] = Words(
    {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "stop",
        "compaction": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    }
)
# The model has not come to its end: it goes on when the client sends the response back.
_UNFINISHED: Final = frozenset({"pause_turn", "compaction"})


def final_fields(finish: Finish, own: JsonObject = EMPTY) -> dict[str, Json]:
    """Returns the fields that say why the answer ended. `own` are those of a backend of the same API, whose word stays
    as it is, also a new one, unless the answer has ended for another reason: with a call, for instance."""
    word = own.get("stop_reason")
    if isinstance(word, str) and STOP_REASONS.values.get(word, finish.reason) == finish.reason:
        return {**own}
    sequence = finish.stop_sequence
    derived = "stop_sequence" if finish.reason == "stop" and sequence is not None else STOP_REASONS.words[finish.reason]
    return {**own, "stop_reason": derived, "stop_sequence": sequence}


def decode_finish(raw: str, sequence: Json) -> tuple[Finish, Notice | None]:
    """Returns the Finish, with the stop sequence that ended the response, and a Notice about an unusual reason."""
    stop = sequence if isinstance(sequence, str) and sequence else None
    reason = STOP_REASONS.values.get(raw)
    if reason is None:
        detail = f"the backend's stop reason {raw[:40]!r} is unknown; read as stop"
        return Finish("stop", raw, stop), Notice("backend", "changed", "FINISH_REASON_UNKNOWN", detail, level="warning")
    if raw in _UNFINISHED:
        detail = f"the backend interrupted its turn ({raw}); it continues when the response is sent back"
        return Finish(reason, raw, stop), Notice("backend", "seen", "TURN_INTERRUPTED", detail, level="warning")
    return Finish(reason, raw, stop), None
