"""Describes xAI, the provider of Grok."""

from typing import Final

import msgspec

from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules, ThinkingRules
from gateway.providers.shared_rules import LIMIT, NO_STOPS, NO_STRICT, PENALTIES, TO_XHIGH, by_effort

# Models that reason refuse the penalties and stop sequences, most of them also an effort.
_GROK: Final = ModelRules(
    r"grok-(4|code)(?!.*non-reasoning).*", refused=PENALTIES, stops=NO_STOPS, thinking=ThinkingRules(efforts=())
)
_REQUEST_RULES: Final = RequestRules(
    ranges=LIMIT,
    models=(
        msgspec.structs.replace(_GROK, models=r"grok-4\.20-multi-agent.*", thinking=by_effort(*TO_XHIGH)),
        msgspec.structs.replace(
            _GROK,
            models=r"grok-4\.3(?![0-9])(?!.*non-reasoning).*",
            thinking=by_effort("none", "low", "medium", "high"),
        ),
        msgspec.structs.replace(
            _GROK, models=r"grok-4\.5(?![0-9])(?!.*non-reasoning).*", thinking=by_effort("low", "medium", "high")
        ),
        msgspec.structs.replace(
            _GROK, models=r"grok-4\.6(?![0-9])(?!.*non-reasoning).*", thinking=by_effort(*TO_XHIGH)
        ),
        _GROK,
        ModelRules(r"grok-(3(?!-mini)|4).*", thinking=ThinkingRules(efforts=(), off={}, default=False)),
    ),
)
# It has no role `developer`, and takes neither `strict` nor a message's `name`.
_PROFILE: Final = Profile(
    tool_name="drop",
    developer="system",
    result_media="user",
    tool_rules=NO_STRICT,
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
)

XAI: Final = Provider(
    "xai",
    {"xai": _PROFILE},
    {"api.x.ai": "xai"},
    published_names=("x-ai",),
    hosted=HostedKind("xai", "openai_chat", "https://api.x.ai/v1", "XAI_API_KEY", "xai"),
)
