"""Describes Google's Gemini: its API that is compatible with OpenAI's. The wire of its own is `adapters/gemini`."""

from typing import Final

from gateway.core.state_rule import StateRule
from gateway.providers import refusals
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules, StopRules
from gateway.providers.shared_rules import LIMIT, OPENAI_FIELDS, by_effort
from gateway.providers.tool_rules import ToolRules

# Fields that it does not know are a 400, "Unknown name". Gemini 2.5 Pro and 3 cannot be switched off.
_REQUEST_RULES: Final = RequestRules(
    ranges=LIMIT,
    refused=("metadata", "prompt_cache_key", "frequency_penalty", "top_k", "reasoning", *OPENAI_FIELDS),
    stops=StopRules(5),
    thinking=by_effort("none", "low", "medium", "high"),
    models=(ModelRules(r"gemini-(2\.5-pro|3).*", thinking=by_effort("low", "medium", "high")),),
)
# Of both of its APIs.
TOOL_RULES: Final = ToolRules(names="unique")
STATE_RULE: Final = StateRule(provider="google", calls=True, turns="loop", required="always")
# A tool message needs the name of its function, taken from the call and never from the client. A turn with calls must
# follow a user turn or tool results. "Please ensure that multiturn requests end with a user role or a function
# response."
_CHAT: Final = Profile(
    tool_names=Alphabet(characters="A-Za-z0-9_.:-", first="A-Za-z_", longest=64),
    tool_content="string",
    tool_name="derive",
    developer="system",
    reasoning="drop",
    first_turn="user",
    last_turn="user",
    empty_beside_calls="empty",
    result_media="user",
    tool_rules=TOOL_RULES,
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
    state=STATE_RULE,
)

GEMINI: Final = Provider(
    "gemini",
    {"gemini": _CHAT},
    {"generativelanguage.googleapis.com": "gemini"},
    published_names=("google",),
    hosted=HostedKind(
        "gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        api_key_header="x-goog-api-key",
    ),
    refusals={
        refusals.CALLS_UNANSWERED: r"number of function response parts is equal to",
        refusals.CALL_ORDER: r"function call turn comes immediately after",
        refusals.ROLE_UNKNOWN: r"(?i:use a valid role)",
        refusals.STATE_INVALID: r"(Corrupted|Invalid) thought.?signature|Thought signature is not valid",
        refusals.SIGNATURE_MISSING: r"missing a thought_signature",
        refusals.TOOL_NAME_MISSING: r"function_response\.name: Name cannot be empty",
        refusals.TOOL_NAME_SHAPE: r"Invalid function name",
        refusals.CONTENT_TYPE: r"must have a text parameter|(?i:contents is not specified)",
        refusals.FORMAT_REFUSED: r"(?i:response mime type.{0,60}unsupported)",
    },
    trace_name="gcp.gemini",
)
