"""Describes MiniMax."""

from typing import Final

from gateway.core.state_rule import StateRule
from gateway.providers import refusals
from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, Range, RequestRules, ThinkingRules
from gateway.providers.shared_rules import ANY_THINKING, LIMIT, OPENAI_NAMES, TYPED_OFF, WITH_PARAMETERS

# M2 always thinks. Temperatures and top_p are above 0, and at most 1.
_REQUEST_RULES: Final = RequestRules(
    ranges={**LIMIT, "temperature": Range(0.01, 1), "top_p": Range(0.01, 1)},
    models=(
        ModelRules(
            r"(?i:minimax-m3).*",
            thinking=ThinkingRules(efforts=(), on={"thinking": {"type": "adaptive"}}, off=TYPED_OFF),
        ),
        ModelRules(r"(?i:minimax-m2).*", thinking=ThinkingRules(efforts=())),
    ),
)
# The reasoning comes as text or in `reasoning_details`, as the request asks.
_PROFILE: Final = Profile(
    tool_names=OPENAI_NAMES,
    tool_content="string",
    developer="system",
    result_media="user",
    tool_rules=WITH_PARAMETERS,
    request_rules=_REQUEST_RULES,
    messages=ANY_THINKING,
    choice_fields="drop",
    state=StateRule(reasoning="plain", fields=("reasoning_details",), turns="all"),
)

MINIMAX: Final = Provider(
    "minimax",
    {"minimax": _PROFILE},
    {"api.minimax.io": "minimax", "api.minimaxi.com": "minimax"},
    hosted=HostedKind("minimax", "openai_chat", "https://api.minimax.io/v1", "MINIMAX_API_KEY", "minimax"),
    refusals={
        refusals.TOOL_ORPHAN: r"tool call result does not follow tool call",
        refusals.TOOL_SCHEMA_REFUSED: r"(?i:function parameters is empty)",
    },
)
