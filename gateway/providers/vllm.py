"""Describes vLLM, and the other servers that apply the templates of the models: SGLang, llama.cpp and LM Studio.

Their profiles fit the strictest of the common templates: "After the optional system message, conversation roles must
alternate user and assistant roles except for tool calls and results." Each has a field for reasoning of its own.
"""

from typing import Final

import msgspec

from gateway.providers import refusals
from gateway.providers.profile import Profile
from gateway.providers.provider import LockedReply, Provider, ServerKind
from gateway.providers.request_rules import ModelRules, RequestRules, ThinkingRules
from gateway.providers.shared_rules import ANY_THINKING, LIMIT, ONLY_EFFORT, WORDS, by_effort

_TEMPLATED: Final = Profile(
    tool_content="string",
    developer="system",
    system="first",
    first_turn="user",
    alternation="strict",
    user_after_tool="bridge",
    empty_beside_calls="empty",
    result_media="user",
    choice_fields="drop",
    messages=ANY_THINKING,
)

# "max_tokens must be at least 1". "Stream options can only be defined when stream=True." An empty list of tools is a
# 400, and so is a choice without tools. Templates know one of two switches; models of Mistral's tokenizer have no
# template, and refuse what is for one.
_VLLM: Final = RequestRules(
    ranges=LIMIT,
    beside={"stream_options": "stream"},
    no_tools="absent",
    thinking=ThinkingRules(
        on={"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
        off={"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
    ),
    models=(
        ModelRules(
            r"(?i:.*(mistral|ministral|magistral|devstral|codestral|pixtral|voxtral|mixtral)).*",
            thinking=ThinkingRules(off=ONLY_EFFORT),
        ),
    ),
)
VLLM: Final = Provider(
    "vllm",
    {"vllm": msgspec.structs.replace(_TEMPLATED, reasoning_field="reasoning", request_rules=_VLLM)},
    server=ServerKind(
        "vllm",
        "vLLM",
        8000,
        "/version",
        {"version": str},
        owner="vllm",
        profile="vllm",
        counter="vllm",
        text_wire="vllm",
    ),
    refusals={
        refusals.ROLE_ORDER: (
            r"roles must alternate|System message must be at the beginning|Cannot set .?add_generation_prompt"
        ),
        refusals.TOOLS_REFUSED: r"tool choice requires --enable-auto-tool-choice",
        refusals.IMAGE_REFUSED: r"(?i:At most 0 image)",
    },
)

# An effort sets the switches of the template itself; harmony's models know no `none`.
_SGLANG: Final = RequestRules(
    ranges=LIMIT,
    beside={"stream_options": "stream"},
    thinking=ThinkingRules(off=ONLY_EFFORT),
    models=(ModelRules(r"(?i:gpt-oss).*", thinking=by_effort("low", "medium", "high")),),
)
SGLANG: Final = Provider(
    "sglang",
    {"sglang": msgspec.structs.replace(_TEMPLATED, reasoning_field="reasoning_content", request_rules=_SGLANG)},
    server=ServerKind("sglang", "SGLang", 30000, "/get_model_info", {"model_path": str}, profile="sglang"),
)

# A limit of -1 is none, and 0 evaluates the prompt alone. A choice is a string. Of efforts older servers know none.
_LLAMA_CPP: Final = RequestRules(
    choices=WORDS,
    thinking=ThinkingRules(
        on={"chat_template_kwargs": {"enable_thinking": True}},
        off={"chat_template_kwargs": {"enable_thinking": False}},
    ),
)
LLAMA_CPP: Final = Provider(
    "llama-cpp",
    {"llama-cpp": msgspec.structs.replace(_TEMPLATED, reasoning_field="reasoning_content", request_rules=_LLAMA_CPP)},
    server=ServerKind(
        "llama-cpp",
        "llama.cpp",
        8080,
        "/props",
        {"default_generation_settings": dict},
        locked=LockedReply({"error": dict}, ("server", "llama.cpp")),
        profile="llama-cpp",
        counter="llama_cpp",
        text_wire="llama_cpp",
    ),
)

LM_STUDIO: Final = Provider(
    "lm-studio",
    {"lm-studio": msgspec.structs.replace(_TEMPLATED, request_rules=RequestRules(limit="max_tokens", choices=WORDS))},
    server=ServerKind(
        "lm-studio", "LM Studio", 1234, "/api/v0/models", {"object": "list", "data": list}, profile="lm-studio"
    ),
    # "Invalid tool_choice type: 'object'. Supported string values: none, auto, required".
    refusals={refusals.TOOL_CHOICE_REFUSED: r"(?i:invalid tool_choice type)"},
)
