"""Describes Z.ai and Zhipu AI, the providers of GLM."""

from typing import Final

from gateway.core.state_rule import StateRule
from gateway.providers import refusals
from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, Range, RequestRules, ThinkingRules
from gateway.providers.shared_rules import (
    ANY_THINKING,
    LIMIT,
    NO_STRICT,
    TO_ONE,
    TYPED_OFF,
    TYPED_ON,
    by_effort,
    limit_to,
)

# From 4.5 to 5.1 an effort is refused; 5.3 always thinks, and knows three efforts. A limit above that of the model is
# refused with its range. The only choice is `auto`.
_SWITCHED: Final = ThinkingRules(efforts=(), on=TYPED_ON, off=TYPED_OFF)
_REQUEST_RULES: Final = RequestRules(
    limit="max_tokens",
    ranges={**LIMIT, **TO_ONE, "top_p": Range(0.01, 1)},
    choices=("auto",),
    models=(
        ModelRules(r"glm-4\.5.*", ranges=limit_to(98_304), thinking=_SWITCHED),
        ModelRules(r"glm-(4\.[6-9]|5|5\.[01])(?![.0-9]).*", ranges=limit_to(131_072), thinking=_SWITCHED),
        ModelRules(
            r"glm-5\.2(?![0-9]).*",
            ranges=limit_to(131_072),
            thinking=ThinkingRules(on=TYPED_ON, off=TYPED_OFF),
        ),
        ModelRules(r"glm-5\.3(?![0-9]).*", ranges=limit_to(131_072), thinking=by_effort("low", "high", "max")),
    ),
)
# "Interleaved thinking": the reasoning of the running loop, unmodified and in its order.
_PROFILE: Final = Profile(
    developer="system",
    reasoning_field="reasoning_content",
    result_media="user",
    tool_rules=NO_STRICT,
    request_rules=_REQUEST_RULES,
    messages=ANY_THINKING,
    choice_fields="drop",
    state=StateRule(reasoning="plain", turns="loop"),
)

GLM: Final = Provider(
    "glm",
    {"glm": _PROFILE},
    {"api.z.ai": "glm", "open.bigmodel.cn": "glm"},
    published_names=("zai", "zhipuai"),
    hosted=HostedKind("glm", "openai_chat", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm"),
    refusals={refusals.ROLE_UNKNOWN: r"(?i:incorrect role information)"},
)
