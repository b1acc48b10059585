"""Gives the adapter the errors of OpenAI's APIs, and defines those of an event that breaks the wire format."""

from adapters.openai_errors import decode_failure, reported_failure
from gateway.core.errors import BackendProtocolError

__all__ = ["decode_failure", "invalid_call", "invalid_event", "reported_failure"]


def invalid_event(reason: str) -> BackendProtocolError:
    """Create the error for an event that breaks the wire format. The reason names places and types, never contents."""
    return BackendProtocolError(f"The backend sent a malformed event: {reason}.")


def invalid_call(message: str) -> BackendProtocolError:
    """Create the error for a tool call of which no call can be made."""
    return BackendProtocolError(message, code="upstream_invalid_tool_call")
