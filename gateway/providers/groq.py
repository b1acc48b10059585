"""Describes Groq."""

from typing import Final

from gateway.providers import refusals
from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules
from gateway.providers.shared_rules import FOUR_STOPS, LIMIT, OPENAI_FIELDS, OPENAI_NAMES, by_effort

# "property 'prompt_cache_key' is unsupported". "The following fields are currently not supported and will result in a
# 400 error": logprobs, logit_bias, top_logprobs.
_REQUEST_RULES: Final = RequestRules(
    ranges=LIMIT,
    refused=("metadata", "prompt_cache_key", "logprobs", "top_logprobs", "logit_bias", *OPENAI_FIELDS),
    values={"service_tier": ("auto", "on_demand", "flex", "performance")},
    stops=FOUR_STOPS,
    models=(
        ModelRules(r"gpt-oss.*", thinking=by_effort("low", "medium", "high")),
        ModelRules(r"qwen3\.8.*", thinking=by_effort("none", "low", "default", "medium", "high")),
        ModelRules(r"qwen3.*", thinking=by_effort("none", "default")),
    ),
)
_PROFILE: Final = Profile(
    tool_names=OPENAI_NAMES,
    content="string",
    tool_content="string",
    tool_name="drop",
    developer="system",
    reasoning="drop",
    max_tools=128,
    result_media="user",
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
)

GROQ: Final = Provider(
    "groq",
    {"groq": _PROFILE},
    {"api.groq.com": "groq"},
    hosted=HostedKind("groq", "openai_chat", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "groq"),
    refusals={
        refusals.REASONING_REFUSED: r"property 'reasoning\w*' is unsupported",
        refusals.CONTENT_TYPE: r"content.? : value must be a string",
    },
)
