"""Reads a number of tokens as backends write it, and asks for one."""

from collections.abc import Collection, Mapping
from typing import Final

from gateway.adapter import BackendRequest
from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError
from gateway.core.events import MOST_TOKENS
from gateway.framing.json_text import NotJson, decode_json, encode_json

_ACCEPTS: Final = ("application/json",)


def counting(request: BackendRequest, path: str, body: Mapping[str, Json]) -> BackendRequest:
    """Returns the request that asks a counter at this path, with the headers of the one whose tokens are counted."""
    headers = {**request.headers, "accept": _ACCEPTS[0]}
    return BackendRequest(path, headers, encode_json(dict(body)).encode(), accepts=_ACCEPTS)


def counted_fields(body: bytes, names: Collection[str] | None = None) -> dict[str, Json]:
    """Returns the fields of a body that a counter takes: those with these names, or all."""
    document = decode_json(body)
    fields = document if isinstance(document, dict) else {}
    return {name: value for name, value in fields.items() if names is None or name in names}


def reported_count(body: bytes, *path: str) -> int:
    """Returns the count at a path of names in the answer of a counter. Raises BackendProtocolError for a body that is
    not JSON, or that has none there."""
    try:
        found = decode_json(body, lenient=True)
    except NotJson as error:
        raise BackendProtocolError("The backend's count of tokens is not JSON.") from error
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    count = token_count(found)
    if count is None:
        raise BackendProtocolError(f"The backend's count of tokens has no {'.'.join(path)}.")
    return count


def token_count(value: Json) -> int | None:
    """Returns a count. Missing, null and impossible counts become None."""
    if value is None or (type(value) is int and 0 <= value <= MOST_TOKENS):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
        return value
    return None
