"""Describes OpenRouter, which passes requests on to many providers."""

from typing import Final

from gateway.core.state_rule import StateRule
from gateway.providers.cache_rules import CacheRules
from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import RequestRules, ThinkingRules
from gateway.providers.shared_rules import ANY_THINKING, FOUR_STOPS, LIMIT, ONLY_EFFORT, PDF

# "Prompt caching": marks on parts of text, which it writes in the words of the provider behind it, and one for the
# whole request.
_CACHE: Final = CacheRules(mark="cache_control", lifetimes=("5m", "1h"), request="cache_control")
# `reasoning` and `reasoning_effort` that differ are an error.
_REQUEST_RULES: Final = RequestRules(
    ranges=LIMIT,
    stops=FOUR_STOPS,
    exclusive=(("reasoning", "reasoning_effort"),),
    thinking=ThinkingRules(off=ONLY_EFFORT),
    cache=_CACHE,
)
# "Preserving reasoning": `reasoning_details` unmodified, whatever model stands behind.
_PROFILE: Final = Profile(
    developer="system",
    result_media="user",
    files=PDF,
    request_rules=_REQUEST_RULES,
    messages=ANY_THINKING,
    choice_fields="drop",
    state=StateRule(fields=("reasoning_details",), turns="all"),
)

OPENROUTER: Final = Provider(
    "openrouter",
    {"openrouter": _PROFILE},
    {"openrouter.ai": "openrouter"},
    hosted=HostedKind("openrouter", "openai_chat", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter"),
)
