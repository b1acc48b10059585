"""A Conversation in, the body of a chat completions request out."""

from typing import Final

import msgspec

from gateway.conversation.messages import encode_turn
from gateway.profiles import Profile
from gateway.types import Conversation, Json, JsonObject, NamedTool, Sampling, ToolSpec

# The fields that offer functions, and those by which a pass forbids them: `functions` is the deprecated way.
_CHOICES: Final = {"tools": "tool_choice", "functions": "function_call"}


def encode_body(conversation: Conversation, profile: Profile) -> bytes:
    """The client's own fields, where it spoke this dialect, else the fields made anew from the values."""
    source = conversation.source
    fields = _fields(conversation) if source is None else _source_fields(conversation, source)
    messages: list[JsonObject] = []
    for turn in conversation.turns:
        if turn.source is not None:
            messages.append(turn.source)
        else:
            messages += encode_turn(turn, profile)
    ours = {"model": conversation.model, "messages": messages}
    return msgspec.json.encode({**ours, **fields, **ours})


def _source_fields(conversation: Conversation, source: JsonObject) -> dict[str, Json]:
    fields = dict(source)
    # A pass that changed a function cleared its source.
    if "tools" in fields and any(tool.source is None for tool in conversation.tools):
        fields["tools"] = [*_other_tools(fields["tools"]), *(_tool(tool) for tool in conversation.tools)]
        _name_choice(fields, conversation)
    if conversation.tool_choice == "none":
        fields |= {choice: "none" for tools, choice in _CHOICES.items() if fields.get(tools)}
    if bool(fields.get("stream")) != conversation.stream:
        fields["stream"] = conversation.stream
    return fields


def _other_tools(tools: Json) -> list[Json]:
    """The entries that are no functions: they have no ToolSpec."""
    entries = tools if isinstance(tools, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and entry.get("type", "function") != "function"]


def _name_choice(fields: dict[str, Json], conversation: Conversation) -> None:
    """A forced function follows its new name."""
    if isinstance(conversation.tool_choice, NamedTool) and "tool_choice" in fields:
        fields["tool_choice"] = _choice(conversation.tool_choice)


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
