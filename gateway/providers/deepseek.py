"""Describes DeepSeek, whose models that think want their reasoning back."""

from typing import Final

import msgspec

from gateway.core.state_rule import StateRule
from gateway.providers import refusals
from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import RequestRules, ThinkingRules
from gateway.providers.shared_rules import ANY_THINKING, LIMIT, NO_FORCED, OPENAI_NAMES, TYPED_OFF, TYPED_ON

# It counts `minimal` as low, `medium` and `xhigh` as high, and thinks unless it is told not to. "Thinking mode does not
# support this tool_choice": only auto and none pass there, any other one without it.
_REQUEST_RULES: Final = RequestRules(
    limit="max_tokens",
    ranges=LIMIT,
    choices_while_thinking=NO_FORCED,
    thinking=ThinkingRules(efforts=("low", "high", "max"), on=TYPED_ON, off=TYPED_OFF),
)
_PROFILE: Final = Profile(
    tool_names=OPENAI_NAMES,
    tool_content="string",
    tool_name="drop",
    developer="system",
    reasoning="drop",
    empty_beside_calls="empty",
    max_tools=128,
    result_media="placeholder",
    request_rules=_REQUEST_RULES,
    messages=ANY_THINKING,
    choice_fields="drop",
)
# If the history holds a tool call, its reasoning is required in all later turns.
_THINKING: Final = msgspec.structs.replace(
    _PROFILE,
    reasoning="echo_all_tool_turns",
    reasoning_field="reasoning_content",
    reasoning_missing="",
    state=StateRule(reasoning="plain", turns="calls", required="always"),
)

DEEPSEEK: Final = Provider(
    "deepseek",
    {"deepseek": _PROFILE, "deepseek-thinking": _THINKING},
    {"api.deepseek.com": "deepseek-thinking"},
    hosted=HostedKind(
        "deepseek", "openai_chat", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-thinking"
    ),
    refusals={
        refusals.CALLS_UNANSWERED: r"insufficient tool messages",
        refusals.FIRST_TURN_ROLE: r"must be a user message, but",
        refusals.DEVELOPER_UNKNOWN: r"unknown variant .?developer",
        refusals.REASONING_MISSING: (
            r"[Mm]issing .?reasoning_content|reasoning_content.? in the thinking mode must be passed back"
        ),
        refusals.IMAGE_REFUSED: r"(?i:unknown variant .?image_url)",
        refusals.TOOL_KIND_REFUSED: r"unknown variant .?\w+.?, expected .?function",
    },
    trace_name="deepseek",
)
