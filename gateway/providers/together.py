"""Describes Together AI."""

from typing import Final

from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import RequestRules
from gateway.providers.shared_rules import LIMIT, NO_STRICT

# It has no role `developer`, takes no `strict`, and has no field for one call at most.
_PROFILE: Final = Profile(
    developer="system",
    result_media="user",
    tool_rules=NO_STRICT,
    request_rules=RequestRules(limit="max_tokens", ranges=LIMIT, refused=("parallel_tool_calls",)),
    choice_fields="drop",
)

TOGETHER: Final = Provider(
    "together",
    {"together": _PROFILE},
    {"api.together.xyz": "together", "api.together.ai": "together"},
    published_names=("together_ai", "togetherai"),
    hosted=HostedKind("together", "openai_chat", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "together"),
)
