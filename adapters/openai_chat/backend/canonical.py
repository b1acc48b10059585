"""Encodes what a client of another dialect asked for: the fields that the chat completions API publishes, and no other.

Sources: OpenAI, API reference, `POST /v1/chat/completions`; Google, OpenAI compatibility, `extra_content`.
"""

from typing import Final, assert_never

import msgspec

from adapters.openai_chat.table import CHOICES, FIELDS
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
from gateway.providers.cache_rules import MARKS

# Google's state is a field of its compatible API; the state of any other provider belongs to another wire.
_PROVIDER: Final = "google"
_SAMPLING: Final = frozenset(Sampling.__struct_fields__)
_NOTHING: Final[frozenset[str]] = frozenset()
_MARKS: Final = frozenset(MARKS)
_IMAGE: Final = frozenset({"detail"}) | _MARKS
_TYPED: Final = frozenset({"type"})
_REFUSAL: Final = _TYPED | _MARKS
CARRIED: Final = frozenset({"detail"}) | _TYPED | {f"{STATE_FIELD}.{_PROVIDER}", "strict"}


def canonical_fields(conversation: Conversation) -> dict[str, Json]:
    """Returns the fields beside the model and the messages."""
    written = FIELDS.write(conversation)
    # In the order of the client, as its own fields are sent, then the sampling.
    own = [name for name in conversation.params if name in written and name not in _SAMPLING]
    fields = {name: written.pop(name) for name in own} | written
    if conversation.stream:
        fields["stream"] = True
        if conversation.include_usage:
            fields["stream_options"] = {"include_usage": True}
    if conversation.tools:
        fields["tools"] = [_tool(tool) for tool in conversation.tools]
        if isinstance(conversation.tool_choice, NamedTool):
            fields["tool_choice"] = _choice(conversation.tool_choice)
        elif conversation.tool_choice != "auto":
            fields["tool_choice"] = CHOICES.words[conversation.tool_choice]
        if not conversation.parallel_tool_calls:
            fields["parallel_tool_calls"] = False
    return fields


def canonical_turn(turn: Turn, kept: frozenset[str] = _NOTHING) -> Turn:
    """Returns the turn with no field that only its client's dialect knows. `kept` are the provider's own fields."""
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
            names = _REFUSAL if part.extra.get("type") == "refusal" else _MARKS
            return msgspec.structs.replace(part, extra=_kept(part.extra, names))
        case Image():
            return msgspec.structs.replace(part, extra=_kept(part.extra, _IMAGE))
        case File():
            return part
        case _:
            assert_never(part)


def _kept(extra: JsonObject, names: frozenset[str]) -> JsonObject:
    """Returns the fields with these names, and the provider's state."""
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
