"""Encodes what a client of another dialect asked for: the fields that the Responses API publishes, and no other.

Source: OpenAI, API reference, `POST /v1/responses`.
"""

from typing import Final

import msgspec

from adapters.openai_responses import PROVIDER
from adapters.openai_responses.backend.thinking import reasoning_field
from adapters.openai_responses.function_names import ClientTool, ToolNames
from adapters.openai_responses.table import CHOICES, FIELDS, TEXT
from gateway.core.call_arguments import is_custom, is_custom_tool
from gateway.core.conversation import Conversation, Json, JsonObject, NamedTool, Reasoning, ToolSpec, Turn
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.core.provider_state import STATE_FIELD, provider_state
from gateway.providers.openai import PROFILE
from gateway.providers.profile import NEUTRAL, Profile

CARRIED: Final = frozenset({"detail", f"{STATE_FIELD}.{PROVIDER}", "strict", "custom"})
# "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16".
LEAST_LIMIT: Final = 16
# No profile says that the provider is another one.
OPENAI: Final = (NEUTRAL, PROFILE)
_NO_PARAMETERS: Final[JsonObject] = {"type": "object", "properties": {}}


def canonical_fields(
    conversation: Conversation, model: str, profile: Profile, notices: list[Notice]
) -> dict[str, Json]:
    """Returns the fields beside the model and the input. `model` is the name by which the rules for models go."""
    fields = FIELDS.write(conversation)
    named: dict[str, Json] = {
        "max_output_tokens": fit_limit(conversation.sampling.max_tokens, profile, conversation.paths, notices),
        "reasoning": reasoning_field(conversation, model, notices),
        "text": _with_values(TEXT.write(conversation)),
    }
    fields |= {name: value for name, value in named.items() if value is not None}
    if conversation.stream:
        fields["stream"] = True
    if conversation.tools:
        fields["tools"] = [_tool(tool) for tool in conversation.tools]
        if isinstance(conversation.tool_choice, NamedTool):
            name = conversation.tool_choice.name
            custom = any(is_custom_tool(tool) and tool.name == name for tool in conversation.tools)
            fields["tool_choice"] = {"type": "custom" if custom else "function", "name": name}
        elif conversation.tool_choice != "auto":
            fields["tool_choice"] = CHOICES.words[conversation.tool_choice]
        if not conversation.parallel_tool_calls:
            fields["parallel_tool_calls"] = False
    return fields


def fit_limit(limit: int | None, profile: Profile, paths: FieldPaths, notices: list[Notice]) -> int | None:
    """Returns the limit of tokens that is sent; None: none. OpenAI refuses one below its least, other providers do not,
    and one below 1 asks for none."""
    path = paths.param("max_tokens")
    if limit is None or limit >= LEAST_LIMIT or (limit >= 1 and profile not in OPENAI):
        return limit
    if limit < 1:
        detail = f"{path} is not sent: a limit of {limit} is none"
        notices.append(Notice("encode", "dropped", "FIELD_NOT_SENT", detail))
        return None
    detail = f"{path} {limit} is sent as {LEAST_LIMIT}, the least that this API accepts"
    notices.append(Notice("encode", "changed", "MAX_TOKENS_RAISED", detail))
    return LEAST_LIMIT


def canonical_turn(turn: Turn, notices: list[Notice]) -> Turn:
    """Returns the turn with nothing that this backend cannot read: of reasoning it reads what its own provider
    wrote."""
    if turn.name is not None:
        detail = "the wire has no field for a speaker's name"
        notices.append(Notice("encode", "dropped", "TURN_NAME_NOT_SENT", detail, index=turn.index, level="debug"))
    blocks = tuple([block for block in turn.blocks if type(block) is not Reasoning or _is_own(block)])
    if len(blocks) < len(turn.blocks):
        detail = "reasoning that the backend's provider did not write"
        notices.append(Notice("encode", "dropped", "REASONING_NOT_SENT", detail, index=turn.index, level="debug"))
    return msgspec.structs.replace(turn, blocks=blocks, source=None)


def custom_names(conversation: Conversation) -> ToolNames:
    """Returns the names of the tools with free text, also of those that only the history has."""
    called = [call.name for turn in conversation.turns for call in turn.calls if is_custom(call)]
    offered = [tool.name for tool in conversation.tools if is_custom_tool(tool)]
    return ToolNames({name: ClientTool("custom", name) for name in (*called, *offered)})


def _is_own(block: Reasoning) -> bool:
    return "encrypted_content" in provider_state(block.extra, PROVIDER)


def _with_values(fields: JsonObject) -> Json:
    """Returns the fields that have a value, or None without any."""
    return {name: value for name, value in fields.items() if value is not None} or None


def _tool(tool: ToolSpec) -> Json:
    """Here a schema is strict unless the request says otherwise, and one that accepts nothing must be written."""
    if is_custom_tool(tool):
        return _custom_tool(tool)
    entry: dict[str, Json] = {"type": "function", "name": tool.name}
    if tool.description:
        entry["description"] = tool.description
    entry["parameters"] = dict(tool.parameters or _NO_PARAMETERS)
    entry["strict"] = bool(tool.strict)
    return entry


def _custom_tool(tool: ToolSpec) -> Json:
    """Returns a custom tool of chat completions: here its fields stand beside the type, and so do those of a
    grammar."""
    own = tool.extra.get("custom")
    entry: dict[str, Json] = {"type": "custom", "name": tool.name, **(own if isinstance(own, dict) else {})}
    match entry.get("format"):
        case {"type": "grammar", "grammar": dict(grammar)}:
            entry["format"] = {"type": "grammar", **grammar}
        case _:
            pass
    return entry
