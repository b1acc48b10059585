"""Encodes what a client of another dialect asked for: the fields that the API publishes.

Source: Gemini API, reference, `models.generateContent`.
"""

from typing import Final

from adapters.gemini.thinking import Thinking, thinking_config
from adapters.service_tier import service_tier
from gateway.core.conversation import Conversation, Json, JsonObject, NamedTool, ToolSpec
from gateway.core.notices import Notice

# The names of `generationConfig` for the canonical fields that are sent with the client's value.
_CONFIG: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
SUPPORTED_PARAMS: Final = frozenset(
    {
        *_CONFIG,
        "max_completion_tokens",
        "max_tokens",
        "model",
        "reasoning_effort",
        "response_format",
        "service_tier",
        "stop",
        "thinking",
        "tool_choice",
    }
)
CARRIED: Final = frozenset({"extra_content", "extra_content.google", "is_error", "type"})
_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_TIERS: Final = {"default": "standard", "flex": "flex", "priority": "priority"}
_JSON_TYPE: Final = "application/json"
# What stands beside a schema in `response_format`, and the members of a schema that say it.
_SAID: Final = {"name": "title", "description": "description"}


def canonical_fields(conversation: Conversation, thinking: Thinking | None, notices: list[Notice]) -> dict[str, Json]:
    """Return the fields beside the contents and the system instruction, and add the notices."""
    fields: dict[str, Json] = {}
    if config := _config(conversation, thinking, notices):
        fields["generationConfig"] = config
    if conversation.tools:
        fields["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in conversation.tools]}]
        if conversation.tool_choice != "auto":
            fields["toolConfig"] = tool_config(conversation)
    if (tier := service_tier(conversation, _TIERS, notices)) is not None:
        fields["serviceTier"] = tier
    return fields


def tool_config(conversation: Conversation) -> dict[str, Json]:
    """Return whether functions may, must or must not be called."""
    choice = conversation.tool_choice
    if isinstance(choice, NamedTool):
        return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [choice.name]}}
    return {"functionCallingConfig": {"mode": _MODES[choice]}}


def _config(conversation: Conversation, thinking: Thinking | None, notices: list[Notice]) -> dict[str, Json]:
    params, sampling = conversation.params, conversation.sampling
    config: dict[str, Json] = {
        name: value for canonical, name in _CONFIG.items() if (value := params.get(canonical)) is not None
    }
    if sampling.max_tokens is not None:
        config["maxOutputTokens"] = sampling.max_tokens
    if sampling.stop:
        config["stopSequences"] = [*sampling.stop]
    config |= _format(conversation, notices)
    if said := thinking_config(conversation, thinking, notices):
        config["thinkingConfig"] = said
    return config


def _format(conversation: Conversation, notices: list[Notice]) -> dict[str, Json]:
    match conversation.params.get("response_format"):
        case {"type": "json_schema", "json_schema": dict(said)} if isinstance(schema := said.get("schema"), dict):
            kept = _described(schema, said)
            place = conversation.paths.param("response_format")
            for name, member in _SAID.items():
                # Only a client whose fields are the canonical ones is sure to have written the name itself.
                written = said.get(name) if name != "name" or conversation.source is None else None
                if written and kept.get(member) != written:
                    detail = f"the backend has no field for {name!r} of {place}, whose schema has its own {member}"
                    notices.append(Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug"))
            return {"responseMimeType": _JSON_TYPE, "responseJsonSchema": kept}
        case {"type": "json_object" | "json_schema"}:
            return {"responseMimeType": _JSON_TYPE}
        case _:
            return {}


def _described(schema: dict[str, Json], said: JsonObject) -> dict[str, Json]:
    """Return the schema with the name and the description that stand beside it, where it has none of its own. Beside
    `$ref` the API takes no other member."""
    if "$ref" in schema:
        return schema
    more: dict[str, Json] = {
        member: text for name, member in _SAID.items() if member not in schema and (text := said.get(name))
    }
    return {**schema, **more}


def _declaration(tool: ToolSpec) -> Json:
    declared: dict[str, Json] = {"name": tool.name}
    if tool.description:
        declared["description"] = tool.description
    if tool.parameters:
        declared["parametersJsonSchema"] = dict(tool.parameters)
    return declared
