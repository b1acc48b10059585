"""Notices for the fields of messages and tools that the Warp wire has no place for."""

from collections import Counter
from collections.abc import Iterator

from adapters.warp.opaque import CONTAINER
from gateway.notices import Notice
from gateway.types import Conversation, Image, JsonObject, Text, ToolCall, ToolSpec, Turn

_TOOL_FIELDS = frozenset({"type", "function"})
_FUNCTION_FIELDS = frozenset({"name", "description", "parameters"})


def unsent_fields(conversation: Conversation) -> list[Notice]:
    """One notice for all messages and one for all tools, with the names of the fields and how often they occur."""
    messages = Counter(name for turn in conversation.turns for name in _turn_fields(turn))
    tools = Counter(name for tool in conversation.tools for name in _tool_fields(tool))
    return [*_notice("messages", messages), *_notice("tools", tools)]


def _turn_fields(turn: Turn) -> Iterator[str]:
    yield from _unknown(turn.extra)
    for block in turn.blocks:
        if isinstance(block, Text | Image | ToolCall) and block.extra:
            yield from _unknown(block.extra)


def _unknown(extra: JsonObject) -> Iterator[str]:
    return (name for name in extra if name != CONTAINER)


def _tool_fields(tool: ToolSpec) -> Iterator[str]:
    source = tool.source or {}
    yield from (name for name in source if name not in _TOOL_FIELDS)
    function = source.get("function")
    if isinstance(function, dict):
        yield from (name for name in function if name not in _FUNCTION_FIELDS)
    elif tool.strict is not None:
        yield "strict"


def _notice(where: str, counts: Counter[str]) -> list[Notice]:
    if not counts:
        return []
    names = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
    detail = f"the backend has no field for {names} of {where}"
    return [Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug")]
