"""Encodes what a client of another dialect asked for: the fields that the API publishes.

Sources: Gemini API, reference, `models.generateContent`; OpenAI compatibility, "Thinking" (the budgets of efforts).
"""

from typing import Final, Literal

from adapters.service_tier import service_tier
from gateway.core.conversation import Conversation, Json, NamedTool, ToolSpec
from gateway.core.notices import Notice

Thinking = Literal["level", "budget"]

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
        "tool_choice",
    }
)
CARRIED: Final = frozenset({"extra_content", "extra_content.google", "is_error", "type"})
_LEVELS: Final = {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH"}
_BUDGETS: Final = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576}
_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_TIERS: Final = {"default": "standard", "flex": "flex", "priority": "priority"}
_JSON_TYPE: Final = "application/json"


def canonical_fields(conversation: Conversation, thinking: Thinking, notices: list[Notice]) -> dict[str, Json]:
    """Return the fields beside the contents and the system instruction, and add the notices."""
    fields: dict[str, Json] = {}
    if config := _config(conversation, thinking):
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


def _config(conversation: Conversation, thinking: Thinking) -> dict[str, Json]:
    params, sampling = conversation.params, conversation.sampling
    config: dict[str, Json] = {
        name: value for canonical, name in _CONFIG.items() if (value := params.get(canonical)) is not None
    }
    if sampling.max_tokens is not None:
        config["maxOutputTokens"] = sampling.max_tokens
    if sampling.stop:
        config["stopSequences"] = [*sampling.stop]
    config |= _format(params.get("response_format"))
    effort = params.get("reasoning_effort")
    if isinstance(effort, str) and (said := _thinking(effort, thinking)):
        config["thinkingConfig"] = said
    return config


def _format(form: Json) -> dict[str, Json]:
    match form:
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return {"responseMimeType": _JSON_TYPE, "responseJsonSchema": schema}
        case {"type": "json_object" | "json_schema"}:
            return {"responseMimeType": _JSON_TYPE}
        case _:
            return {}


def _thinking(effort: str, thinking: Thinking) -> dict[str, Json]:
    """Return how much the model thinks; it shows its thoughts, unless there are none. No level means none."""
    if effort not in _BUDGETS:
        return {}
    if thinking == "budget" or effort not in _LEVELS:
        return {"thinkingBudget": _BUDGETS[effort], "includeThoughts": effort != "none"}
    return {"thinkingLevel": _LEVELS[effort], "includeThoughts": True}


def _declaration(tool: ToolSpec) -> Json:
    declared: dict[str, Json] = {"name": tool.name}
    if tool.description:
        declared["description"] = tool.description
    if tool.parameters:
        declared["parametersJsonSchema"] = dict(tool.parameters)
    return declared
