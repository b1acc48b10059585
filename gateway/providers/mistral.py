"""Describes Mistral AI."""

from typing import Final

from gateway.providers import refusals
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import Range, RequestRules
from gateway.providers.shared_rules import LIMIT, OPENAI_FIELDS, OPENAI_NAMES, WITH_PARAMETERS

# Another field than its schema has is a 422, `extra_forbidden`.
_REQUEST_RULES: Final = RequestRules(
    limit="max_tokens",
    ranges={**LIMIT, "temperature": Range(0, 1.5)},
    renamed={"seed": "random_seed"},
    refused=("service_tier", *OPENAI_FIELDS),
    no_tools="absent",
)
# Ids are exactly nine alphanumeric characters, up to the eleventh version of its tokenizer. Its validator accepts a
# system message only after another one or after the user's; its templates begin with the user.
_PROFILE: Final = Profile(
    call_id=Alphabet(characters="A-Za-z0-9", shortest=9, longest=9),
    tool_names=OPENAI_NAMES,
    tool_name="derive",
    developer="system",
    reasoning="drop",
    system="first",
    first_turn="user",
    alternation="strict",
    user_after_tool="bridge",
    empty_beside_calls="empty",
    tool_rules=WITH_PARAMETERS,
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
)

MISTRAL: Final = Provider(
    "mistral",
    {"mistral": _PROFILE},
    {"api.mistral.ai": "mistral"},
    hosted=HostedKind("mistral", "openai_chat", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral"),
    refusals={
        refusals.CALLS_UNANSWERED: r"Not the same number of function calls",
        refusals.TOOL_ID_UNKNOWN: r"Unexpected tool call id",
        refusals.TOOL_ID_DUPLICATE: r"Duplicate tool call id",
        refusals.ROLE_ORDER: r"Unexpected role '\w+' after role|Expected last role",
        refusals.CALL_ID_SHAPE: r"Tool call id was .* but must be",
    },
    trace_name="mistral_ai",
)
