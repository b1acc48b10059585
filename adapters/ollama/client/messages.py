"""Encodes a Turn as messages of a chat: one for each of its results, and one for its other content."""

from adapters.ollama.client.calls import call_object
from adapters.ollama.client.images import image_text
from gateway.core.conversation import Image, Json, JsonObject, Reasoning, ToolResult, Turn


def encode_turn(turn: Turn) -> list[JsonObject]:
    """Returns the messages. No request of Ollama has other parts than text and images."""
    messages = [_result_message(turn, result) for result in turn.results]
    if not messages or len(turn.blocks) > len(messages):
        messages.append(_message(turn))
    return messages


def _result_message(turn: Turn, result: ToolResult) -> JsonObject:
    name: dict[str, Json] = {} if turn.name is None else {"tool_name": turn.name}
    images: list[Json] = [image_text(part) for part in result.content if isinstance(part, Image)]
    shown: dict[str, Json] = {"images": images} if images else {}
    return {"role": "tool", "content": result.text, "tool_call_id": result.call_id, **name, **shown}


def _message(turn: Turn) -> JsonObject:
    message: dict[str, Json] = {"role": _role(turn), "content": turn.text}
    if thinking := "".join([block.text for block in turn.blocks if isinstance(block, Reasoning)]):
        message["thinking"] = thinking
    if images := [image_text(block) for block in turn.blocks if isinstance(block, Image)]:
        message["images"] = [*images]
    if calls := turn.calls:
        message["tool_calls"] = [
            call_object(call.id, call.name, call.arguments, position) for position, call in enumerate(calls)
        ]
    return message


def _role(turn: Turn) -> str:
    """Returns a role that Ollama knows."""
    return {"developer": "system", "tool": "user"}.get(turn.role, turn.role)
