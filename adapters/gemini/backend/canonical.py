"""Encodes what a client of another dialect asked for: the fields that the API publishes.

Source: Gemini API, reference, `models.generateContent`.
"""

from typing import Final

from adapters.gemini.table import CONFIG, MODES, TIERS
from adapters.gemini.thinking import Thinking, thinking_config
from gateway.core.conversation import Conversation, Json, NamedTool, ToolSpec
from gateway.core.notices import Notice
from gateway.wires.response_schema import described_schema
from gateway.wires.service_tier import service_tier

CARRIED: Final = frozenset({"extra_content", "extra_content.google", "is_error", "type"})
_JSON_TYPE: Final = "application/json"


def canonical_fields(conversation: Conversation, thinking: Thinking | None, notices: list[Notice]) -> dict[str, Json]:
    """Returns the fields beside the contents and the system instruction, and adds the notices."""
    fields: dict[str, Json] = {}
    if config := _config(conversation, thinking, notices):
        fields["generationConfig"] = config
    if conversation.tools:
        fields["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in conversation.tools]}]
        if conversation.tool_choice != "auto":
            fields["toolConfig"] = tool_config(conversation)
    if (tier := service_tier(conversation, TIERS.words, notices)) is not None:
        fields["serviceTier"] = tier
    return fields


def tool_config(conversation: Conversation) -> dict[str, Json]:
    """Returns whether functions may, must or must not be called."""
    choice = conversation.tool_choice
    if isinstance(choice, NamedTool):
        return {"functionCallingConfig": {"mode": MODES.words["required"], "allowedFunctionNames": [choice.name]}}
    return {"functionCallingConfig": {"mode": MODES.words[choice]}}


def _config(conversation: Conversation, thinking: Thinking | None, notices: list[Notice]) -> dict[str, Json]:
    config = CONFIG.write(conversation)
    config |= _format(conversation, notices)
    if said := thinking_config(conversation, thinking, notices):
        config["thinkingConfig"] = said
    return config


def _format(conversation: Conversation, notices: list[Notice]) -> dict[str, Json]:
    schema = described_schema(conversation, notices)
    if schema is not None:
        return {"responseMimeType": _JSON_TYPE, "responseJsonSchema": schema}
    match conversation.params.get("response_format"):
        case {"type": "json_object" | "json_schema"}:
            return {"responseMimeType": _JSON_TYPE}
        case _:
            return {}


def _declaration(tool: ToolSpec) -> Json:
    declared: dict[str, Json] = {"name": tool.name}
    if tool.description:
        declared["description"] = tool.description
    if tool.parameters:
        declared["parametersJsonSchema"] = dict(tool.parameters)
    return declared
