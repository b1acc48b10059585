"""Describes Alibaba's Qwen, which also hosts the open models of others."""

from typing import Final

import msgspec

from gateway.providers import refusals
from gateway.providers.cache_rules import CacheRules
from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, Range, RequestRules, ThinkingRules
from gateway.providers.shared_rules import ANY_THINKING, LIMIT, NO_FORCED

_THINKING: Final = ThinkingRules(efforts=(), on={"enable_thinking": True}, off={"enable_thinking": False})


def _efforts(*efforts: str) -> ThinkingRules:
    return msgspec.structs.replace(_THINKING, efforts=efforts)


# Temperatures are below 2. "parameter.enable_thinking must be set to false for non-streaming calls": its open models.
# An effort beside a budget is refused, and so is a forced call while they think.
_REQUEST_RULES: Final = RequestRules(
    ranges={**LIMIT, "temperature": Range(0, 1.99)},
    exclusive=(("reasoning_effort", "thinking_budget"),),
    choices_while_thinking=NO_FORCED,
    thinking=_THINKING,
    # "Explicit cache": at most four marks on parts, of which each looks back over 20 blocks; valid for five minutes.
    cache=CacheRules(mark="cache_control"),
    models=(
        ModelRules(r"qwen3\.8-max.*", thinking=_efforts("low", "medium", "xhigh")),
        ModelRules(r"(deepseek-v4.*-[0-9]{4,}|glm-5\.3).*", thinking=_efforts("low", "high", "max")),
        ModelRules(r"(deepseek-v4|glm-5\.2).*", thinking=_efforts("high", "max")),
        ModelRules(
            r"qwen3(\.[0-9]+)?-[0-9.]+b(?!.*(instruct|thinking)).*",
            thinking=msgspec.structs.replace(_THINKING, streamed=True),
        ),
    ),
)
# "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']".
_PROFILE: Final = Profile(
    developer="system",
    result_media="user",
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
    messages=ANY_THINKING,
)

QWEN: Final = Provider(
    "qwen",
    {"qwen": _PROFILE},
    {"dashscope.aliyuncs.com": "qwen", "dashscope-intl.aliyuncs.com": "qwen"},
    published_names=("dashscope", "alibaba"),
    hosted=HostedKind(
        "qwen",
        "openai_chat",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        "qwen",
    ),
    refusals={
        refusals.DEVELOPER_UNKNOWN: r"developer is not one of",
        refusals.THINKING_REFUSED: r"(?i:enable_thinking.{0,60}(?:must|not))",
        refusals.SAMPLING_REFUSED: r"(?i:range of temperature)",
    },
)
