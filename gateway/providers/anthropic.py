"""Describes Anthropic: its Messages API, and its API that is compatible with OpenAI's."""

from typing import Final

import msgspec

from gateway.core.state_rule import StateRule
from gateway.providers import refusals
from gateway.providers.messages_rules import MessagesModel, MessagesRules
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules, StopRules
from gateway.providers.shared_rules import OPENAI_NAMES, TO_ONE
from gateway.providers.tool_rules import ToolRules

_NEWEST_CLAUDE: Final = MessagesModel(
    r"(.*\.)?claude-((fable|mythos)-5-[1-9]|(opus|sonnet)-5-[5-9])(?![0-9]).*",
    system="anywhere",
    sampling="default",
    refused_thinking=("enabled", "disabled"),
    forced_tools="never",
)
# "Preserved thinking" (a block counts while the system prompt, the tools and the messages before it are what they were;
# the older models have no such check), "Mid-conversation system messages" (not available on Sonnet 5), and the
# migration guides (of Claude 4.7: "setting temperature, top_p or top_k to any non-default value will return a 400
# error", no more budgets; of Fable 5: thinking cannot be disabled; of Fable 5.1: a tool_choice of the type any or tool
# is a 400).
_CLAUDE: Final = (
    _NEWEST_CLAUDE,
    msgspec.structs.replace(
        _NEWEST_CLAUDE,
        models=r"(.*\.)?claude-haiku-5-[5-9](?![0-9]).*",
        refused_thinking=("enabled",),
        forced_tools="without_thinking",
    ),
    MessagesModel(
        r"(.*\.)?claude-(fable|mythos)-5(?![0-9]).*",
        thinking="signed",
        system="anywhere",
        sampling="default",
        refused_thinking=("enabled", "disabled"),
    ),
    MessagesModel(
        r"(.*\.)?claude-(opus-4-[89]|(opus|haiku)-5)(?![0-9]).*",
        thinking="signed",
        system="anywhere",
        sampling="default",
        refused_thinking=("enabled",),
    ),
    MessagesModel(
        r"(.*\.)?claude-(opus-4-7|sonnet-5)(?![0-9]).*",
        thinking="signed",
        sampling="default",
        refused_thinking=("enabled",),
    ),
    MessagesModel(r"(.*\.)?claude-(opus|sonnet|haiku)-4-[56](?![0-9]).*", thinking="signed", sampling="one"),
    MessagesModel(r"(.*\.)?claude-(instant|[123]|(opus|sonnet)-4).*", thinking="signed"),
)
# "Invalid `signature` in `thinking` block", "text content blocks must be non-empty", "Tool names must be unique",
# "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
# "temperature: range: 0..1".
MESSAGES_PROFILE: Final = Profile(
    call_id=Alphabet(characters="a-zA-Z0-9_-"),
    tool_rules=ToolRules(root="object", names="unique", most_strict=20),
    choice_fields="drop",
    messages=MessagesRules(thinking="bound", blank_text="drop", most_temperature=1, models=_CLAUDE),
    state=StateRule(provider="anthropic", reasoning="signed", turns="loop", required="thinking"),
)
# "temperature and top_p cannot both be specified for this model": from 4.5 on. From Opus 4.7 on no temperature but 1 is
# accepted, no top_p and no top_k. A temperature above 1 is lowered. Only stop sequences that are not blank work.
_REQUEST_RULES: Final = RequestRules(
    ranges=TO_ONE,
    stops=StopRules(blank=False),
    models=(
        ModelRules(r"claude-(opus-4-[7-9]|[a-z]+-5)(?![0-9]).*", refused=("top_p", "top_k"), fixed={"temperature": 1}),
        ModelRules(r"claude-[a-z]+-4-[5-9](?![0-9]).*", exclusive=(("temperature", "top_p"),)),
    ),
)
# "This model does not support assistant message prefill. The conversation must end with a user message."
# It hoists every system and developer message to the beginning.
_CHAT: Final = Profile(
    call_id=Alphabet(characters="A-Za-z0-9_-"),
    tool_names=OPENAI_NAMES,
    tool_name="drop",
    developer="system",
    reasoning="drop",
    system="first",
    first_turn="user",
    last_turn="user",
    empty_beside_calls="null",
    empty_text="(empty)",
    tool_rules=ToolRules(root="object", names="unique"),
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
)

ANTHROPIC: Final = Provider(
    "anthropic",
    {"anthropic": MESSAGES_PROFILE, "anthropic-compat": _CHAT},
    {"api.anthropic.com": "anthropic-compat"},
    hosted=HostedKind(
        "anthropic", "anthropic_messages", "https://api.anthropic.com", "ANTHROPIC_API_KEY", api_key_header="x-api-key"
    ),
    refusals={
        refusals.CALLS_UNANSWERED: r"tool_use.? ids were found without|Did not find \d+ .?tool_result.? block",
        refusals.TOOL_ID_UNKNOWN: r"unexpected .?tool_use_id.? found",
        refusals.TOOL_ID_DUPLICATE: r"must have a single result",
        refusals.FIRST_TURN_ROLE: r"first message must use the .user. role",
        refusals.ROLE_ORDER: r"support assistant message prefill",
        refusals.REASONING_MISSING: r"Expected .?thinking.? or .?redacted_thinking",
        refusals.STATE_INVALID: (
            r"Invalid .?(signature|data).? in .?(redacted_)?thinking"
            r"|thinking.? blocks in the latest assistant message cannot be modified"
        ),
        refusals.CONTENT_TYPE: r"(?i:must (?:have|contain) (?:non-empty content|non-whitespace text))",
        refusals.TOOL_SCHEMA_REFUSED: r"(?i:input_schema does not support|tool names must be unique)",
        refusals.CACHE_MARKS_REFUSED: r"cache_control (?:may|cannot|can not)|blocks with cache_control",
        refusals.LIMIT_REFUSED: r"(?i:max_tokens\W+must be greater than .?thinking\.budget_tokens)",
        refusals.THINKING_REFUSED: r"(?i:thinking\.type.{0,60}not support|adaptive thinking is not)",
    },
    trace_name="anthropic",
)
