"""Describes Cerebras."""

from typing import Final

from gateway.providers import refusals
from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules
from gateway.providers.shared_rules import FOUR_STOPS, LIMIT, OPENAI_FIELDS, by_effort

# `parallel_tool_calls` false is refused for gpt-oss.
_REQUEST_RULES: Final = RequestRules(
    ranges=LIMIT,
    refused=("metadata", *OPENAI_FIELDS),
    stops=FOUR_STOPS,
    thinking=by_effort("none", "low", "medium", "high"),
    models=(ModelRules(r"gpt-oss.*", refused=("parallel_tool_calls",), thinking=by_effort("low", "medium", "high")),),
)
# A field that it does not know, also in a message, is a 400, `wrong_api_format`: `reasoning_content` is one.
_PROFILE: Final = Profile(
    developer="system",
    reasoning_field="reasoning",
    result_media="user",
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
)

CEREBRAS: Final = Provider(
    "cerebras",
    {"cerebras": _PROFILE},
    {"api.cerebras.ai": "cerebras"},
    hosted=HostedKind("cerebras", "openai_chat", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "cerebras"),
    refusals={refusals.REASONING_REFUSED: r"wrong_api_format"},
)
