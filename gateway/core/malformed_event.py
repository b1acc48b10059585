"""Makes what an adapter reports of an event that it cannot read: an error, and a notice for the operator.

Both quote no content."""

import hashlib

from gateway.core.errors import BackendProtocolError
from gateway.core.notices import Notice


def invalid_event(reason: str) -> BackendProtocolError:
    """Returns the error for an event that breaks the wire format. The reason names places and types, never contents."""
    return BackendProtocolError(f"The backend sent a malformed event: {reason}.")


def malformed_event(data: bytes) -> Notice:
    """Returns a notice with the size of the event and the beginning of its digest."""
    digest = hashlib.sha256(data).hexdigest()[:12]
    detail = f"an event of {len(data)} bytes (SHA-256 {digest}...) cannot be read"
    return Notice("backend", "failed", "MALFORMED_EVENT", detail, level="warning")
