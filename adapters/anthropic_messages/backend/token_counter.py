"""Asks the counter of the Messages API how many tokens a request has."""

from typing import Final

from adapters.anthropic_messages.table import COUNT
from gateway.adapter import BackendRequest
from gateway.wires.token_count import counted_fields, counting, reported_count

# The fields of the API's `count_tokens`, also those in beta; it refuses others (anthropic-sdk-python,
# MessageCountTokensParams).
_COUNTED: Final = frozenset(
    {
        *("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "output_format"),
        *("cache_control", "context_management", "mcp_servers", "speed"),
    }
)


def count_request(request: BackendRequest) -> BackendRequest:
    """Returns the request that asks for the tokens of this one, with the fields that the counter takes."""
    return counting(request, f"{request.path}{COUNT}", counted_fields(request.body, _COUNTED))


def decode_count(body: bytes) -> int:
    """Returns the number in its answer. Raises BackendProtocolError."""
    return reported_count(body, "input_tokens")
