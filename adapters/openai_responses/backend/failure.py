"""Sets up the errors of OpenAI's APIs for the adapter, and defines those of an event that breaks the wire format."""

from adapters.openai.backend_errors import decode_failure, reported_failure
from gateway.core.errors import BackendProtocolError

__all__ = ["decode_failure", "invalid_call", "reported_failure"]


def invalid_call(message: str) -> BackendProtocolError:
    """Creates the error for a tool call of which no call can be made."""
    return BackendProtocolError(message, code="upstream_invalid_tool_call")
