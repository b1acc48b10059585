"""Maps a backend's finish reason to one of the four finish reasons of the protocol, which are the words of the API."""

from typing import Final

from gateway.core.errors import BackendRejected
from gateway.core.events import Finish, Reason
from gateway.core.notices import Notice
from gateway.wires.table import Words

REASONS: Final[Words[Reason]] = Words(
    {
        **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "stop_token", "completed"), "stop"),
        **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "tool_calls"),
        **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
        **dict.fromkeys(
            ("content_filter", "safety", "recitation", "prohibited_content", "blocklist"), "content_filter"
        ),
    }
)

# Reasons for an aborted response: reporting one of these as a stop would report a failure as a success.
FAILURES: Final = frozenset(
    {
        "error",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "timeout",
        "network_error",
        "engine_error",
        "insufficient_system_resource",
        "malformed_function_call",
    }
)


def decode_finish(raw: str, stop: str | None) -> tuple[Finish, Notice | None]:
    """Returns the Finish, with the stop sequence that the backend names, and a Notice when the reason is unknown.

    Raises BackendRejected for a reason that means a failure.
    """
    word = raw.lower()
    reason = REASONS.values.get(word)
    if reason is not None:
        return Finish(reason, raw, stop), None
    if word in FAILURES:
        raise BackendRejected(f"The backend ended the response early: {word}.")
    detail = f"the backend's finish reason {raw[:40]!r} is unknown; read as stop"
    return Finish("stop", raw, stop), Notice("backend", "changed", "FINISH_REASON_UNKNOWN", detail, level="warning")
