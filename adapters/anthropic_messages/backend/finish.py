"""Maps a stop reason of the Messages API to one of the four finish reasons of the protocol."""

from typing import Final

from adapters.anthropic_messages.finish import MEANINGS
from gateway.core.conversation import Json
from gateway.core.events import Finish
from gateway.core.notices import Notice

# The model has not come to its end: it goes on when the client sends the response back.
_UNFINISHED: Final = frozenset({"pause_turn", "compaction"})


def decode_finish(raw: str, sequence: Json) -> tuple[Finish, Notice | None]:
    """Return the Finish, with the stop sequence that ended the response, and a Notice about an unusual reason."""
    stop = sequence if isinstance(sequence, str) and sequence else None
    reason = MEANINGS.get(raw)
    if reason is None:
        detail = f"the backend's stop reason {raw[:40]!r} is unknown; read as stop"
        return Finish("stop", raw, stop), Notice("backend", "changed", "FINISH_REASON_UNKNOWN", detail, level="warning")
    if raw in _UNFINISHED:
        detail = f"the backend interrupted its turn ({raw}); it continues when the response is sent back"
        return Finish(reason, raw, stop), Notice("backend", "seen", "TURN_INTERRUPTED", detail, level="warning")
    return Finish(reason, raw, stop), None
