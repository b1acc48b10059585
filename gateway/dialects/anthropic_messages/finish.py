"""Maps a finish reason to a stop reason of the API."""

from collections.abc import Mapping
from typing import Final

from gateway.core.events import Finish, Reason

_STOP_REASONS: Final[Mapping[Reason, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
# The reasons that a backend of the same API gives and no other has: its client acts on them.
_OWN: Final[Mapping[str, Reason]] = {
    "pause_turn": "stop",
    "compaction": "stop",
    "model_context_window_exceeded": "length",
}


def stop_reason(finish: Finish) -> str:
    """Returns the stop reason; `stop_sequence` if one of the client's sequences ended the answer."""
    if finish.raw is not None and _OWN.get(finish.raw) == finish.reason:
        return finish.raw
    if finish.reason == "stop" and finish.stop_sequence is not None:
        return "stop_sequence"
    return _STOP_REASONS[finish.reason]
