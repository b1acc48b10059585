"""Reads the names in a backend's list of models."""

from gateway.core.errors import BackendProtocolError
from gateway.framing.json_text import NotJson, decode_json


def names_in_list(body: bytes, key: str, name: str) -> tuple[str, ...]:
    """Returns the texts at `name` of every object in the list at `key`.

    Raises BackendProtocolError when there is no such list, or no name in it though it is not empty.
    """
    try:
        document = decode_json(body)
    except NotJson as error:
        raise _no_list() from error
    listed = document.get(key) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise _no_list()
    names = [entry.get(name) for entry in listed if isinstance(entry, dict)]
    found = tuple(found for found in names if isinstance(found, str))
    if listed and not found:
        raise _no_list()
    return found


def _no_list() -> BackendProtocolError:
    return BackendProtocolError("The backend's list of models cannot be read.", code="upstream_invalid_response")
