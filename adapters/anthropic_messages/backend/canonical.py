"""Encodes the request of a client of another dialect: the fields that the Messages API publishes, and no other.

Source: Anthropic, API reference, `POST /v1/messages`.
"""

from collections.abc import Mapping
from typing import Final

from adapters.anthropic_messages import PROVIDER
from adapters.anthropic_messages.backend.options import AnthropicMessagesOptions
from adapters.anthropic_messages.backend.request_fields import without_sampling
from adapters.anthropic_messages.backend.thinking import thinking_fields
from adapters.anthropic_messages.backend.turns import EncodedTurns
from adapters.anthropic_messages.table import CHOICES, FIELDS, METADATA, SCHEMA, TIERS
from gateway.core.conversation import Conversation, Json, NamedTool, ToolSpec
from gateway.core.errors import Unsupported
from gateway.core.notices import Notice
from gateway.core.provider_state import STATE_FIELD
from gateway.wires.response_schema import described_schema
from gateway.wires.service_tier import service_tier

CARRIED: Final = frozenset({"cache_control", "is_error", "strict", f"{STATE_FIELD}.{PROVIDER}"})


def canonical_fields(
    conversation: Conversation, options: AnthropicMessagesOptions, turns: EncodedTurns, notices: list[Notice]
) -> dict[str, Json]:
    """Returns the fields beside the model, the system prompt and the messages, and adds the notices. Raises Unsupported
    for a response format without a schema."""
    limit = conversation.sampling.max_tokens
    if limit is None:
        limit = options.max_tokens
        detail = f"the backend requires a limit; {limit} tokens are sent"
        notices.append(Notice("encode", "added", "MAX_TOKENS_ADDED", detail, level="debug"))
    thinking = thinking_fields(conversation, options, turns, limit, notices)
    shape = None if "response_format" in options.prompted else _format(conversation, notices)
    fields: dict[str, Json] = {
        "max_tokens": limit,
        **FIELDS.write(conversation),
        "service_tier": service_tier(conversation, TIERS.words, notices),
        "metadata": METADATA.write(conversation) or None,
        "tools": [_tool(tool) for tool in conversation.tools] or None,
        "tool_choice": _choice(conversation) if conversation.tools else None,
        "stream": conversation.stream or None,
        "thinking": thinking.mode,
        "output_config": {**thinking.config, **({} if shape is None else {"format": shape})} or None,
    }
    fields = {name: value for name, value in fields.items() if value is not None}
    notices += without_sampling(fields, conversation)
    return fields


def _tool_field(tool: ToolSpec, name: str) -> Json:
    """Returns an unknown field of a tool, or of its function, where some clients of chat completions write it."""
    function = tool.extra.get("function")
    return tool.extra.get(name, function.get(name) if isinstance(function, Mapping) else None)


def _tool(tool: ToolSpec) -> Json:
    fields: dict[str, Json] = {"name": tool.name}
    if tool.description:
        fields["description"] = tool.description
    # The arguments of a function are an object, whether or not its schema says so.
    fields["input_schema"] = {**tool.parameters, "type": "object"}
    if tool.strict is not None:
        fields["strict"] = tool.strict
    if (mark := _tool_field(tool, "cache_control")) is not None:
        fields["cache_control"] = mark
    return fields


def _format(conversation: Conversation, notices: list[Notice]) -> Json:
    """Returns the format of the response; None where the client did not ask for one."""
    schema = described_schema(conversation, notices)
    if schema is not None:
        return {"type": SCHEMA, "schema": schema}
    match conversation.params.get("response_format"):
        case None | {"type": None | "text"}:
            return None
        case _:
            param = conversation.paths.param("response_format")
            raise Unsupported(f"{param} is not supported: this model's backend needs a JSON schema.", param=param)


def _choice(conversation: Conversation) -> Json:
    """Returns the choice; None for the default."""
    choice = conversation.tool_choice
    fields: dict[str, Json] = (
        {"type": "tool", "name": choice.name} if isinstance(choice, NamedTool) else {"type": CHOICES.words[choice]}
    )
    if not conversation.parallel_tool_calls and choice != "none":
        fields["disable_parallel_tool_use"] = True
    return None if fields == {"type": "auto"} else fields
