"""Describes Moonshot AI, the provider of Kimi."""

from typing import Final

import msgspec

from gateway.core.state_rule import StateRule
from gateway.providers import refusals
from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules, StopRules, ThinkingRules
from gateway.providers.shared_rules import (
    ANY_THINKING,
    LIMIT,
    NO_FORCED,
    OPENAI_NAMES,
    PENALTIES,
    TO_ONE,
    TYPED_OFF,
    TYPED_ON,
    WORDS,
)
from gateway.providers.tool_rules import ToolRules

# "invalid temperature: only 1 is allowed for this model"; the default is refused as well. The effort is of K3 alone,
# which cannot be switched off, as K2.7 Code. A forced call is refused while they think; K3 accepts one of any function.
_K: Final = ModelRules(
    r"kimi-k.*", refused=("temperature", "top_p", "n", *PENALTIES), thinking=ThinkingRules(efforts=())
)
_REQUEST_RULES: Final = RequestRules(
    ranges=LIMIT,
    stops=StopRules(5, longest=32),
    models=(
        msgspec.structs.replace(
            _K,
            models=r"kimi-k3.*",
            thinking=ThinkingRules(efforts=("low", "high", "max")),
            choices_while_thinking=WORDS,
        ),
        msgspec.structs.replace(_K, models=r"kimi-k2\.7-code.*", choices_while_thinking=NO_FORCED),
        msgspec.structs.replace(
            _K,
            models=r"kimi-k2\.[56](?![0-9]).*",
            thinking=ThinkingRules(efforts=(), on=TYPED_ON, off=TYPED_OFF),
            choices_while_thinking=NO_FORCED,
        ),
        _K,
        ModelRules(r"moonshot-v1.*", ranges=TO_ONE),
    ),
)
# The chat template parses ids such as functions.NAME:0, so they must stay unchanged, also when a proxy counts from 0 in
# every round.
_THINKING: Final = Profile(
    reused_ids="keep",
    tool_names=OPENAI_NAMES,
    tool_name="drop",
    developer="system",
    reasoning="echo_in_tool_loop",
    reasoning_field="reasoning_content",
    reasoning_missing=".",
    empty_beside_calls="empty",
    max_tools=128,
    result_media="user",
    tool_rules=ToolRules(root="object", most_strict=0),
    request_rules=_REQUEST_RULES,
    messages=ANY_THINKING,
    choice_fields="drop",
    state=StateRule(reasoning="plain", turns="loop", required="always"),
)

KIMI: Final = Provider(
    "kimi",
    {"kimi-thinking": _THINKING},
    {"api.moonshot.ai": "kimi-thinking", "api.moonshot.cn": "kimi-thinking"},
    published_names=("moonshot", "moonshotai"),
    hosted=HostedKind("kimi", "openai_chat", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-thinking"),
    refusals={refusals.REASONING_MISSING: r"reasoning_content.? is missing"},
    trace_name="moonshot_ai",
)
