"""Describes OpenAI's API, and Azure's, which serves the same models as deployments."""

from typing import Final

import msgspec

from gateway.providers import refusals
from gateway.providers.cache_rules import CHAT_CACHE
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules, StopRules, ThinkingRules
from gateway.providers.shared_rules import (
    LIMIT,
    NO_STOPS,
    OPENAI_NAMES,
    PDF,
    PENALTIES,
    TO_XHIGH,
    by_effort,
    limit_to,
)
from gateway.providers.tool_rules import ToolRules

_REASONING: Final = ModelRules(
    "",
    refused=PENALTIES,
    refused_while_reasoning=("top_p",),
    fixed_while_reasoning={"temperature": 1},
    stops=NO_STOPS,
)
# "Stop: not supported with latest reasoning models o3 and o4-mini."
_O: Final = msgspec.structs.replace(
    _REASONING,
    models=r"o[1-9](?![0-9]).*",
    refused=("logprobs", "top_logprobs", *PENALTIES),
    ranges=limit_to(100_000),
    stops=None,
    thinking=by_effort("low", "medium", "high"),
)
_GPT: Final = msgspec.structs.replace(
    _REASONING,
    models=r"gpt-[56](?!.*-chat)(?![0-9]).*",
    refused=("logit_bias", "prediction", *PENALTIES),
    ranges=limit_to(128_000),
)
# "Unrecognized request argument supplied: reasoning_effort", of models that do not reason. The effort `max` is one of
# the Responses API alone. "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions.
# Please use /v1/responses instead": from gpt-5.5 on also without an effort, but not with `none`. Models without `none`
# refuse tools there.
_MODELS: Final = (
    ModelRules(r".*-chat-latest", ranges=limit_to(16_384)),
    ModelRules(r"(gpt-[34](?![0-9])|gpt-35-|chatgpt-).*", thinking=ThinkingRules(efforts=(), off={}, default=False)),
    msgspec.structs.replace(
        _GPT,
        models=r"gpt-5\.4(?!.*-(chat|pro))(?![0-9]).*",
        thinking=by_effort("none", *TO_XHIGH, default=False),
        effort_beside_tools="none",
        default_effort="none",
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"(?!gpt-6\.1-sol)(gpt-5\.[5-9]|gpt-6)(?!.*-(chat|pro|astra))(?![0-9]).*",
        thinking=by_effort("none", *TO_XHIGH),
        effort_beside_tools="none",
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"(gpt-5\.[2-9]|gpt-6)(?=.*(-pro|-astra|\.1-sol))(?!.*-chat)(?![0-9]).*",
        thinking=by_effort(*TO_XHIGH),
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"gpt-5\.2(?!.*-(chat|pro|codex))(?![0-9]).*",
        thinking=by_effort("none", *TO_XHIGH, default=False),
        default_effort="none",
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"gpt-5\.1(?!.*-(chat|pro|codex))(?![0-9]).*",
        thinking=by_effort("none", "low", "medium", "high", default=False),
        default_effort="none",
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"gpt-5(?!\.)(?!.*-(chat|pro))(?![0-9]).*",
        refused=("logprobs", "top_logprobs", *_GPT.refused),
        thinking=by_effort("minimal", "low", "medium", "high"),
    ),
    _GPT,
    msgspec.structs.replace(_O, models=r"(o3(?!-mini)|o4)(?![0-9]).*", stops=NO_STOPS),
    _O,
)
# "Unsupported parameter: 'max_tokens' is not supported with this model"; the newer name is for all models. "The
# 'metadata' parameter is only allowed when 'store' is enabled." "'tool_choice' is only allowed when 'tools' are
# specified." "Up to 4 sequences where the API will stop".
REQUEST_RULES: Final = RequestRules(
    limit="max_completion_tokens",
    ranges=LIMIT,
    beside={"metadata": "store"},
    no_tools="absent",
    stops=StopRules(4),
    models=_MODELS,
    cache=CHAT_CACHE,
)
# "Invalid schema for function: object schema missing properties", "array schema missing items", and "schema must have
# type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level": of both of its APIs.
TOOL_RULES: Final = ToolRules(root="object", nested="complete")
# It refused longer ids than 40 with `string_above_max_length`, tool arrays over 128 with `array_above_max_length`.
PROFILE: Final = Profile(
    call_id=Alphabet(longest=40),
    tool_names=OPENAI_NAMES,
    tool_name="drop",
    reasoning="drop",
    result_media="user",
    files=PDF,
    max_tools=128,
    tool_rules=TOOL_RULES,
    request_rules=REQUEST_RULES,
    choice_fields="drop",
)

OPENAI: Final = Provider(
    "openai",
    {"openai": PROFILE},
    {"api.openai.com": "openai"},
    hosted=HostedKind("openai", "openai_chat", "https://api.openai.com/v1", "OPENAI_API_KEY", "openai"),
    refusals={
        refusals.CALLS_UNANSWERED: (
            r"must be followed by tool messages|did not have response messages|No tool output found for function call"
            r"|assistant message with 'tool_calls' must be followed"
        ),
        refusals.TOOL_ORPHAN: r"role .?tool.? must be a response to a prece+ding message",
        refusals.TOOL_ID_UNKNOWN: r"No tool call found for function call output",
        refusals.REASONING_MISSING: r"without its required .?reasoning.? item",
        refusals.STATE_INVALID: (
            r"of type .?reasoning.? was provided without its required following item"
            r"|encrypted content .*could not be (verified|decrypted|parsed)"
        ),
        refusals.CALL_ID_SHAPE: r"'?tool_calls\[\d+\]\.id'?: string too long",
        refusals.TOOL_NAME_SHAPE: r"'tools\[\d+\]\.function\.name'?: string does not match pattern",
        refusals.TOOLS_COUNT: r"Invalid 'tools': array too long",
        refusals.TOOL_SCHEMA_REFUSED: r"(?i:invalid schema for (?:function|tool))",
        refusals.STOP_REFUSED: r"(?i:'stop': array too long)",
        refusals.LIMIT_REFUSED: r"(?i:integer below minimum value)",
        refusals.EFFORT_BESIDE_TOOLS: (r"(?i:tools? (?:with|and) .?reasoning_effort.? (?:is|are) not supported)"),
        refusals.SUMMARIES_REFUSED: r"(?i:must be verified to generate reasoning summaries)",
    },
)

# A deployment has the rules of the model behind it, which its name does not tell: `base_model` of the model's entry
# does.
AZURE: Final = Provider(
    "azure",
    {"azure": PROFILE},
    {"*.openai.azure.com": "azure", "*.services.ai.azure.com": "azure"},
    deployments=True,
    hosted=HostedKind(
        "azure",
        "openai_chat",
        "https://NAME.openai.azure.com/openai/v1",
        "AZURE_OPENAI_API_KEY",
        "azure",
        "api-key",
        named=True,
    ),
)
