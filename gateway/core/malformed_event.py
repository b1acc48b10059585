"""Makes what is reported of an event that cannot be read: an error, and a notice for the operator; behind the end of a
response, which nothing can fail any more, a notice alone. None quotes content."""

import hashlib
from typing import Final

from gateway.core.errors import BackendProtocolError
from gateway.core.notices import Notice

LATE_FAULT: Final = Notice(
    "backend", "ignored", "LATE_FAULT", "an error or a malformed event after the end of the response", level="warning"
)
TAIL_BROKEN: Final = Notice(
    "backend", "dropped", "TAIL_BROKEN", "an incomplete event after the end of the response", level="warning"
)


def invalid_event(reason: str) -> BackendProtocolError:
    """Returns the error for an event that breaks the wire format. The reason names places and types, never contents."""
    return BackendProtocolError(f"The backend sent a malformed event: {reason}.")


def malformed_event(data: bytes) -> Notice:
    """Returns a notice with the size of the event and the beginning of its digest."""
    digest = hashlib.sha256(data).hexdigest()[:12]
    detail = f"an event of {len(data)} bytes (SHA-256 {digest}...) cannot be read"
    return Notice("backend", "failed", "MALFORMED_EVENT", detail, level="warning")
