"""Describes Ollama: its own API, and its API that is compatible with OpenAI's."""

from typing import Final

from gateway.providers import refusals
from gateway.providers.profile import Profile
from gateway.providers.provider import Provider, ServerKind
from gateway.providers.request_rules import RequestRules
from gateway.providers.shared_rules import ANY_THINKING, by_effort

# It knows no `tool_choice` and no `parallel_tool_calls`: both would be ignored.
_REQUEST_RULES: Final = RequestRules(
    limit="max_tokens",
    refused=("parallel_tool_calls",),
    choices=("auto",),
    thinking=by_effort("none", "low", "medium", "high"),
)
_OWN: Final = Profile(
    arguments="object",
    content="string",
    tool_content="string",
    tool_name="derive",
    tool_name_field="tool_name",
    developer="system",
    reasoning="drop",
    empty_beside_calls="empty",
    result_media="user",
    request_rules=_REQUEST_RULES,
    messages=ANY_THINKING,
    choice_fields="drop",
)
# A part of a list becomes a message of its own, which has no tool's name. Its templates know no role `developer`.
_CHAT: Final = Profile(
    content="string",
    tool_content="string",
    developer="system",
    reasoning_field="reasoning",
    empty_beside_calls="empty",
    result_media="user",
    request_rules=_REQUEST_RULES,
    choice_fields="drop",
    messages=ANY_THINKING,
)

OLLAMA: Final = Provider(
    "ollama",
    {"ollama": _OWN, "ollama-compat": _CHAT},
    server=ServerKind(
        "ollama", "Ollama", 11434, "/api/version", {"version": str}, profile="ollama-compat", text_wire="ollama_chat"
    ),
    refusals={
        refusals.TOOLS_REFUSED: r"does not support tools",
        refusals.CALL_ARGS_TYPE: (
            r"cannot unmarshal string into Go struct field .*arguments|looks like object, but can't find closing"
        ),
    },
)
