"""Asks the counter of the Responses API how many tokens a request has."""

from typing import Final

from adapters.openai_responses.table import COUNT
from gateway.adapter import BackendRequest
from gateway.wires.token_count import counted_fields, counting, reported_count

# The fields of the API's `input_tokens` (openai-python, InputTokenCountParams).
_COUNTED: Final = frozenset(
    {
        *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text"),
        *("conversation", "previous_response_id", "personality", "truncation"),
    }
)


def count_request(request: BackendRequest) -> BackendRequest:
    """Returns the request that asks for the tokens of this one, with the fields that the counter takes."""
    return counting(request, f"{request.path}{COUNT}", counted_fields(request.body, _COUNTED))


def decode_count(body: bytes) -> int:
    """Returns the number in its answer. Raises BackendProtocolError."""
    return reported_count(body, "input_tokens")
