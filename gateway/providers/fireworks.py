"""Describes Fireworks AI."""

from typing import Final

from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules
from gateway.providers.shared_rules import FOUR_STOPS, LIMIT, by_effort

# Both limits together are an error, and so are `thinking` and `reasoning_effort`. Harmony's models and MiniMax's cannot
# be switched off.
_REQUEST_RULES: Final = RequestRules(
    limit="max_tokens",
    ranges=LIMIT,
    stops=FOUR_STOPS,
    exclusive=(("reasoning_effort", "thinking"),),
    thinking=by_effort("none", "low", "medium", "high"),
    models=(ModelRules(r"(gpt-oss|minimax).*", thinking=by_effort("low", "medium", "high")),),
)
_PROFILE: Final = Profile(
    reasoning_field="reasoning_content", result_media="user", request_rules=_REQUEST_RULES, choice_fields="drop"
)

FIREWORKS: Final = Provider(
    "fireworks",
    {"fireworks": _PROFILE},
    {"api.fireworks.ai": "fireworks"},
    published_names=("fireworks_ai", "fireworks-ai"),
    hosted=HostedKind(
        "fireworks", "openai_chat", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "fireworks"
    ),
)
