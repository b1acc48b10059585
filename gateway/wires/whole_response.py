"""Bounds a response that is no stream: it is kept until its bytes have ended."""

from typing import Final

from gateway.core.errors import BackendProtocolError

# A whole response may be larger than any one event of a stream.
EVENTS_PER_RESPONSE: Final = 4


def response_too_large(limit: int) -> BackendProtocolError:
    """Return the error for a response of more than `limit` bytes."""
    return BackendProtocolError(
        f"The backend's response is larger than {limit} bytes.", code="upstream_response_too_large"
    )
