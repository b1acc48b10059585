"""Gives the adapter the errors of OpenAI's APIs, and defines the one for a chunk that breaks the wire format."""

from adapters.openai_errors import decode_failure, message_of, reported_failure
from gateway.core.errors import BackendProtocolError

__all__ = ["decode_failure", "invalid_event", "message_of", "reported_failure"]


def invalid_event(reason: str) -> BackendProtocolError:
    """Create the error for a chunk that breaks the wire format. The reason names places and types, never contents."""
    return BackendProtocolError(f"The backend sent a malformed chunk: {reason}.")
