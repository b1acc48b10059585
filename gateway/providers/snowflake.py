"""Describes Snowflake Cortex."""

from typing import Final

from gateway.providers.profile import Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import RequestRules
from gateway.providers.shared_rules import limit_to

# `max_tokens` is ignored, and the answer ends at 4,096 tokens.
_PROFILE: Final = Profile(
    result_media="user",
    request_rules=RequestRules(limit="max_completion_tokens", ranges=limit_to(131_072)),
    choice_fields="drop",
    finish_reason="optional",
)

SNOWFLAKE: Final = Provider(
    "snowflake",
    {"snowflake": _PROFILE},
    {"*.snowflakecomputing.com": "snowflake"},
    hosted=HostedKind(
        "snowflake",
        "openai_chat",
        "https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1",
        "SNOWFLAKE_API_KEY",
        "snowflake",
        named=True,
    ),
)
