"""Encodes what a client of another dialect asked for: the fields that the chat completions API publishes, and no other.

Sources: OpenAI, API reference, `POST /v1/chat/completions`; Google, OpenAI compatibility, `extra_content`.
"""

from typing import Final, assert_never

import msgspec

from gateway.core.conversation import (
    EMPTY,
    Block,
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
    NamedTool,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.provider_state import STATE_FIELD, provider_state, with_provider_state
from gateway.wires.response_schema import named_schema

# Sent with the value that the client gave them. Not `logprobs`: no event has them for a client of another dialect.
_PARAMS: Final = frozenset(
    {
        "audio",
        "frequency_penalty",
        "logit_bias",
        "metadata",
        "modalities",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
        "verbosity",
        "web_search_options",
    }
)
# Sent from the conversation's own fields, or as the profile's rules for a request say it.
_VALUES: Final = frozenset(
    {
        "max_completion_tokens",
        "max_tokens",
        "model",
        "parallel_tool_calls",
        "seed",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "top_p",
    }
)
SUPPORTED_PARAMS: Final = _PARAMS | _VALUES

# Google's state is a field of its compatible API; the state of any other provider belongs to another wire.
_PROVIDER: Final = "google"
_NOTHING: Final[frozenset[str]] = frozenset()
_IMAGE: Final = frozenset({"detail"})
_TYPED: Final = frozenset({"type"})
CARRIED: Final = _IMAGE | _TYPED | {f"{STATE_FIELD}.{_PROVIDER}", "strict"}


def canonical_fields(conversation: Conversation) -> dict[str, Json]:
    """Return the fields beside the model and the messages."""
    fields: dict[str, Json] = {
        name: value for name, value in conversation.params.items() if name in _PARAMS and value is not None
    }
    form = fields.get("response_format")
    if isinstance(form, dict) and isinstance(said := form.get("json_schema"), dict):
        fields["response_format"] = {**form, "json_schema": named_schema(said)}
    fields |= _sampling(conversation.sampling)
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


def canonical_turn(turn: Turn, kept: frozenset[str] = _NOTHING) -> Turn:
    """Return the turn with no field that only its client's dialect knows. `kept` are the provider's own fields."""
    blocks = tuple([_block(block) for block in turn.blocks])
    return msgspec.structs.replace(turn, blocks=blocks, extra=_kept(turn.extra, kept), source=None)


def _block(block: Block) -> Block:
    match block:
        case Text() | Image() | File():
            return _part(block)
        case Reasoning():
            return msgspec.structs.replace(block, extra=_kept(block.extra, _NOTHING))
        case ToolCall():
            return msgspec.structs.replace(block, extra=_kept(block.extra, _TYPED))
        case ToolResult():
            return msgspec.structs.replace(block, content=tuple([_part(part) for part in block.content]))
        case _:
            assert_never(block)


def _part(part: Text | Image | File) -> Text | Image | File:
    """A file never arrives here: its part is in the words of the client's dialect."""
    match part:
        case Text():
            names = _TYPED if part.extra.get("type") == "refusal" else _NOTHING
            return msgspec.structs.replace(part, extra=_kept(part.extra, names))
        case Image():
            return msgspec.structs.replace(part, extra=_kept(part.extra, _IMAGE))
        case File():
            return part
        case _:
            assert_never(part)


def _kept(extra: JsonObject, names: frozenset[str]) -> JsonObject:
    """Return the fields with these names, and the provider's state."""
    if not extra:
        return EMPTY
    kept = {name: value for name, value in extra.items() if name in names}
    state = provider_state(extra, _PROVIDER)
    return {**kept, **with_provider_state(_PROVIDER, state)} if state else kept


def _choice(tool: NamedTool) -> Json:
    return {"type": "function", "function": {"name": tool.name}}


def _tool(tool: ToolSpec) -> Json:
    function: dict[str, Json] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.parameters:
        function["parameters"] = dict(tool.parameters)
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _sampling(sampling: Sampling) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
    }
    return {key: value for key, value in fields.items() if value is not None}
