"""Describes Amazon Bedrock."""

from typing import Final

import msgspec

from gateway.providers import refusals
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.provider import HostedKind, Provider
from gateway.providers.request_rules import ModelRules, RequestRules
from gateway.providers.shared_rules import LIMIT, NO_STOPS, OPENAI_NAMES, PENALTIES

# GPT refuses sampling while it reasons; newer ones and Grok answer "doesn't support the stopSequences field".
_GPT: Final = ModelRules(
    r"(openai\.)?gpt-[56](?![0-9]).*",
    refused_while_reasoning=("temperature", "top_p", *PENALTIES),
)
_REQUEST_RULES: Final = RequestRules(
    limit="max_completion_tokens",
    ranges=LIMIT,
    models=(
        ModelRules(r"(openai\.)?gpt-oss.*", refused=("logit_bias",)),
        msgspec.structs.replace(_GPT, models=r"(openai\.)?(gpt-5\.[6-9]|gpt-6)(?![0-9]).*", stops=NO_STOPS),
        _GPT,
        ModelRules(r"(xai\.)?grok.*", refused=PENALTIES, stops=NO_STOPS),
    ),
)
# "A conversation must start with a user message", and alternate. Most of its models require "the last turn in the
# conversation to be a user message".
_PROFILE: Final = Profile(
    call_id=Alphabet(characters="A-Za-z0-9_.:-", longest=64),
    tool_names=OPENAI_NAMES,
    tool_name="drop",
    developer="system",
    reasoning="drop",
    first_turn="user",
    last_turn="user",
    alternation="strict",
    user_after_tool="bridge",
    empty_beside_calls="null",
    empty_text="(empty)",
    result_media="user",
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
)

BEDROCK: Final = Provider(
    "bedrock",
    {"bedrock": _PROFILE},
    {"bedrock-runtime.*.amazonaws.com": "bedrock"},
    published_names=("bedrock_converse", "amazon-bedrock", "aws"),
    hosted=HostedKind(
        "bedrock",
        "openai_chat",
        "https://bedrock-runtime.REGION.amazonaws.com/openai/v1",
        "AWS_BEARER_TOKEN_BEDROCK",
        "bedrock",
        named=True,
    ),
    refusals={
        refusals.TOOL_ORPHAN: r"number of toolResult blocks at .* exceeds",
        refusals.FIRST_TURN_ROLE: r"must start with a user message",
        refusals.ROLE_ORDER: r"cannot be provided in the same turn",
        refusals.TOOLS_MISSING: r"toolConfig field must be defined",
        refusals.CONTENT_TYPE: r"content field at .* cannot be empty",
        refusals.STOP_REFUSED: r"(?i:support the stopSequences)",
    },
    trace_name="aws.bedrock",
)
