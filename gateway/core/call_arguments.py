"""Reads the arguments of a call, which are JSON text from a model, as an object."""

from typing import Final

import msgspec

from gateway.core.conversation import Json, ToolCall, ToolSpec
from gateway.framing.json_text import NotJson, decode_json

# The key that holds arguments which are no object.
AS_TEXT: Final = "arguments"
# The only argument of a custom tool, whose input is free text.
INPUT: Final = "input"
_ANY_DEPTH: Final = 1 << 20


def is_custom(call: ToolCall) -> bool:
    """Returns whether the call is one of a custom tool in the client's own API."""
    return call.extra.get("type") == "custom"


def is_custom_tool(tool: ToolSpec) -> bool:
    """Returns whether the function is a custom tool in the client's own API."""
    return tool.extra.get("type") == "custom"


def custom_arguments(text: str) -> str:
    """Returns the arguments of a call of a custom tool with this input."""
    return msgspec.json.encode({INPUT: text}).decode()


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
