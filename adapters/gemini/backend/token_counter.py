"""Asks the counter of the Gemini API how many tokens a request has."""

from urllib.parse import unquote

from adapters.gemini.table import COUNT
from gateway.adapter import BackendRequest
from gateway.wires.token_count import counted_fields, counting, reported_count


def count_request(request: BackendRequest) -> BackendRequest:
    """Returns the request that asks for the tokens of this one: all of it, with the name of its model (Google,
    "Counting tokens")."""
    path = request.path.rpartition(":")[0]
    asked = {**counted_fields(request.body), "model": unquote(path.removeprefix("/"))}
    return counting(request, f"{path}:{COUNT}", {"generateContentRequest": asked})


def decode_count(body: bytes) -> int:
    """Returns the number in its answer. Raises BackendProtocolError."""
    return reported_count(body, "totalTokens")
