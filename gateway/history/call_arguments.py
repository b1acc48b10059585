"""Reads the arguments of a call, which are JSON text from a model, as an object."""

from typing import Final

from gateway.core.conversation import Json, ToolCall
from gateway.framing.json_text import NotJson, decode_json

# The key that holds arguments which are no object.
AS_TEXT: Final = "arguments"
_ANY_DEPTH: Final = 1 << 20


def is_custom(call: ToolCall) -> bool:
    """Returns whether the call's arguments are free text instead of JSON."""
    return call.extra.get("type") == "custom"


def as_object(text: str) -> dict[str, Json]:
    """Returns arguments as an object, for backends that refuse text. Wraps other text in an object, invents none."""
    value = read_object(text)
    return {AS_TEXT: text} if value is None else value


def is_json(text: str) -> bool:
    """Returns whether arguments are one JSON value of any type and depth."""
    try:
        decode_json(text.encode(), _ANY_DEPTH)
    except NotJson:
        return False
    return True


def is_truncated(text: str) -> bool:
    """Returns whether arguments end inside their JSON, as those of a call in which the model reached its limit."""
    try:
        decode_json(text.encode())
    except NotJson as error:
        return bool(text) and error.truncated
    return False


def read_object(text: str) -> dict[str, Json] | None:
    """Returns the object written in the arguments' text, an empty one for blank text; None for anything else."""
    if not text.strip():
        return {}
    try:
        value = decode_json(text.encode())
    except NotJson:
        return None
    return value if isinstance(value, dict) else None
