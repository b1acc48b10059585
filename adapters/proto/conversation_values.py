"""Turns a conversation into the values of a structured template: turns, parts, calls, results and tools."""

from collections.abc import Iterator
from typing import Any, Final

from adapters.proto.request_template import Values
from adapters.text.encode import sampling_values
from adapters.text.wire import FIELD
from gateway.core.conversation import Conversation, NamedTool, Reasoning, Text, ToolCall, Turn
from gateway.core.notices import Notice

_SYSTEM: Final = ("system", "developer")


def conversation_values(
    conversation: Conversation, names: frozenset[str], max_tokens: int | None, max_stops: int | None
) -> dict[str, Any]:
    """Return the value of each name of the template; None: the name has no value. (Any: items are mappings.)"""
    choice = conversation.tool_choice
    offered = () if choice == "none" else conversation.tools
    called = {call.id: call.name for turn in conversation.turns for call in turn.calls}
    return {
        "$model": conversation.model or None,
        "$stop": [stop for stop in conversation.sampling.stop if stop][:max_stops],
        **sampling_values(conversation, max_tokens),
        **{name: conversation.params.get(name.removeprefix(FIELD)) for name in names if name.startswith(FIELD)},
        "$choice": "named" if isinstance(choice, NamedTool) else choice,
        "$chosen": choice.name if isinstance(choice, NamedTool) else None,
        "$turns": [item for turn in conversation.turns for item in _items(turn, called)],
        "$tools": [
            {"$name": tool.name, "$description": tool.description or None, "$parameters": dict(tool.parameters) or None}
            for tool in offered
        ],
    }


def not_sent(conversation: Conversation) -> list[Notice]:
    """Return a notice of what no template has a name for: reasoning, and the names of speakers."""
    thoughts = sum(isinstance(block, Reasoning) for turn in conversation.turns for block in turn.blocks)
    speakers = sum(turn.name is not None for turn in conversation.turns)
    counted = {"reasoning": thoughts, "name": speakers}
    words = ", ".join(f"{name} ({count})" for name, count in counted.items() if count)
    if not words:
        return []
    detail = f"the backend has no field for {words} of messages"
    return [Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug")]


def _items(turn: Turn, called: dict[str, str]) -> Iterator[Values]:
    """Yield the results of a turn, each as an item of its own, and then the turn if it says something else."""
    for result in turn.results:
        name = called.get(result.call_id)
        yield {"$role": "tool", "$id": result.call_id, "$name": name, "$text": result.text}
    if turn.role == "tool":
        return
    yield {
        "$role": "system" if turn.role in _SYSTEM else turn.role,
        "$text": turn.text or None,
        "$parts": [_part(block) for block in turn.blocks if isinstance(block, Text | ToolCall)],
        "$calls": [_call(call) for call in turn.calls],
    }


def _part(block: Text | ToolCall) -> Values:
    return {"$kind": "text", "$text": block.text} if isinstance(block, Text) else {"$kind": "call", **_call(block)}


def _call(call: ToolCall) -> Values:
    return {"$id": call.id, "$name": call.name, "$arguments": call.arguments}
