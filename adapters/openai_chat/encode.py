"""Encodes a conversation as the body of a chat completions request."""

from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Json, JsonObject, NamedTool, Sampling, ToolSpec
from gateway.core.profiles import Profile
from gateway.dialects.openai_chat.messages import encode_turn

# The fields that offer functions, and the fields by which a pass forbids them. `functions` is deprecated.
_CHOICES: Final = {"tools": "tool_choice", "functions": "function_call"}

_encode: Final = msgspec.json.Encoder().encode


def encode_body(conversation: Conversation, profile: Profile) -> bytes:
    """Encode the client's own fields if the client spoke this dialect; otherwise build the fields from the values."""
    source = conversation.source
    messages: list[JsonObject] = []
    for turn in conversation.turns:
        if turn.source is not None:
            messages.append(turn.source)
        else:
            messages += encode_turn(turn, profile)
    said = _fields(conversation) if source is None else source
    body: dict[str, object] = {"model": "", "messages": [], **said}
    body["model"], body["messages"] = conversation.model, messages
    if source is not None:
        _follow(conversation, source, body)
    return _encode(body)


def _follow(conversation: Conversation, source: JsonObject, body: dict[str, object]) -> None:
    """Replace what the client wrote by what the passes decided."""
    if conversation.tool_choice == "none":
        body |= {choice: "none" for tools, choice in _CHOICES.items() if source.get(tools)}
    if bool(source.get("stream")) != conversation.stream:
        body["stream"] = conversation.stream


def _fields(conversation: Conversation) -> dict[str, Json]:
    fields: dict[str, Json] = {**_sampling(conversation.sampling)}
    if conversation.stream:
        fields["stream"] = True
        if conversation.include_usage:
            fields["stream_options"] = {"include_usage": True}
    if conversation.tools:
        fields["tools"] = [_tool(tool) for tool in conversation.tools]
        if isinstance(conversation.tool_choice, NamedTool):
            fields["tool_choice"] = _choice(conversation.tool_choice)
        elif conversation.tool_choice != "auto":
            fields["tool_choice"] = conversation.tool_choice
        if not conversation.parallel_tool_calls:
            fields["parallel_tool_calls"] = False
    return fields


def _choice(tool: NamedTool) -> Json:
    return {"type": "function", "function": {"name": tool.name}}


def _tool(tool: ToolSpec) -> Json:
    if tool.source is not None:
        return dict(tool.source)
    function: dict[str, Json] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.parameters:
        function["parameters"] = dict(tool.parameters)
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _sampling(sampling: Sampling) -> dict[str, Json]:
    said: dict[str, Json] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
    }
    return {key: value for key, value in said.items() if value is not None}
