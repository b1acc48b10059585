"""Defines the whole request of the API as msgspec types, for the published document."""

from typing import Annotated, Any, Final, Literal

import msgspec

from adapters.openai_chat.table import ChatFields, FunctionName, Tool
from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName

_NAMED: Final = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def _choice(kind: str, body: object, *, required: bool) -> dict[str, object]:
    fields = {"type": {"const": kind} if required else {"type": "string"}, kind: body}
    return {"type": "object", "properties": fields, "required": ["type", kind] if required else [kind]}


_ALLOWED: Final = {
    "type": "object",
    "properties": {"mode": {"enum": ["auto", "required"]}, "tools": {"type": "array"}},
    "required": ["mode"],
}
_WORD: Final = {"enum": ["auto", "none", "required", None]}
# Of several structs in a union msgspec can describe only tagged ones.
_TOOL_CHOICE: Final = {
    "anyOf": [
        _WORD,
        _choice("function", _NAMED, required=False),
        _choice("custom", _NAMED, required=True),
        _choice("allowed_tools", _ALLOWED, required=True),
    ]
}


# The gateway reads only tools of type function.
_TOOL: Final = {
    "anyOf": [
        {"properties": {"function": {"type": "object"}}, "required": ["function"]},
        {"properties": {"type": {"not": {"const": "function"}}}, "required": ["type"]},
    ]
}
_MESSAGES: Final = {
    "contains": {"not": {"type": "null"}},
    "items": {
        "description": "A message as OpenAI knows it: an object with `role`, `content`, `tool_calls`, `tool_call_id`. "
        "A message of any other shape is repaired with a notice, or refused if `repair` is `strict`.",
    },
}


class ChatCompletionRequest(ChatFields, frozen=True, kw_only=True):
    """A chat completions request. Fields that are not listed are legal.

    For the published document only. It also holds the fields that the reader checks with error texts of its own.
    """

    model: ModelName
    messages: Annotated[list[Any], msgspec.Meta(min_length=1, extra_json_schema=_MESSAGES)]
    tools: list[Annotated[Tool, msgspec.Meta(extra_json_schema=_TOOL)]] | None = None
    tool_choice: Annotated[Any, msgspec.Meta(extra_json_schema=_TOOL_CHOICE)] = None
    function_call: Literal["auto", "none", "required"] | FunctionName | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=1)] | None = None


class ExplainRequest(ChatCompletionRequest, frozen=True, kw_only=True):
    """A chat completions request; without a model it is for the first one. `profile` and `settings` (policy keys)
    override those of the model."""

    model: OptionalModelName = msgspec.UNSET
    n: int | None = None
    profile: str | None = None
    settings: FreeObject | None = None
