"""Lists what each provider of a chat completions API demands of the fields of a request, by models where they differ.

The source of every entry is a provider's documentation, error text, SDK or server. Of models that no entry names only
that is known which their provider demands of all.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.request_rules import ModelRules, Range, RequestRules, StopRules, ThinkingRules

_PENALTIES: Final = ("presence_penalty", "frequency_penalty")
# Fields of OpenAI's bookkeeping and of its own models, which others refuse by name.
_OPENAI_FIELDS: Final = ("prompt_cache_retention", "safety_identifier", "store", "verbosity")
# "max_tokens must be at least 1".
_LIMIT: Final = {"max_tokens": Range(1)}
_TO_ONE: Final = {"temperature": Range(0, 1)}
_FOUR_STOPS: Final = StopRules(4)
_NO_STOPS: Final = StopRules(0)
_ONLY_EFFORT: Final = {"reasoning_effort": "none"}
_TYPED_ON: Final = {"thinking": {"type": "enabled"}}
_TYPED_OFF: Final = {"thinking": {"type": "disabled"}}
_NO_FORCED: Final = ("auto", "none")
_WORDS: Final = ("auto", "none", "required")


def _limit(most: int) -> Mapping[str, Range]:
    return {"max_tokens": Range(1, most)}


def _efforts(*efforts: str, default: bool = True) -> ThinkingRules:
    """Returns the rules of models whose effort alone says how much they think, and by `none` that they do not."""
    return ThinkingRules(efforts=efforts, off=_ONLY_EFFORT if "none" in efforts else None, default=default)


_TO_XHIGH: Final = ("low", "medium", "high", "xhigh")
_REASONING: Final = ModelRules(
    "",
    refused=_PENALTIES,
    refused_while_reasoning=("top_p",),
    fixed_while_reasoning={"temperature": 1},
    stops=_NO_STOPS,
)
# "Stop: not supported with latest reasoning models o3 and o4-mini."
_O: Final = msgspec.structs.replace(
    _REASONING,
    models=r"o[1-9](?![0-9]).*",
    refused=("logprobs", "top_logprobs", *_PENALTIES),
    ranges=_limit(100_000),
    stops=None,
    thinking=_efforts("low", "medium", "high"),
)
_GPT: Final = msgspec.structs.replace(
    _REASONING,
    models=r"gpt-[56](?!.*-chat)(?![0-9]).*",
    refused=("logit_bias", "prediction", *_PENALTIES),
    ranges=_limit(128_000),
)
# "Unrecognized request argument supplied: reasoning_effort", of models that do not reason. The effort `max` is one of
# the Responses API alone. "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions.
# Please use /v1/responses instead": from gpt-5.5 on also without an effort, but not with `none`. Models without `none`
# refuse tools there.
_OPENAI_MODELS: Final = (
    ModelRules(r".*-chat-latest", ranges=_limit(16_384)),
    ModelRules(r"(gpt-[34](?![0-9])|gpt-35-|chatgpt-).*", thinking=ThinkingRules(efforts=(), off={}, default=False)),
    msgspec.structs.replace(
        _GPT,
        models=r"gpt-5\.4(?!.*-(chat|pro))(?![0-9]).*",
        thinking=_efforts("none", *_TO_XHIGH, default=False),
        effort_beside_tools="none",
        default_effort="none",
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"(?!gpt-6\.1-sol)(gpt-5\.[5-9]|gpt-6)(?!.*-(chat|pro|astra))(?![0-9]).*",
        thinking=_efforts("none", *_TO_XHIGH),
        effort_beside_tools="none",
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"(gpt-5\.[2-9]|gpt-6)(?=.*(-pro|-astra|\.1-sol))(?!.*-chat)(?![0-9]).*",
        thinking=_efforts(*_TO_XHIGH),
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"gpt-5\.2(?!.*-(chat|pro|codex))(?![0-9]).*",
        thinking=_efforts("none", *_TO_XHIGH, default=False),
        default_effort="none",
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"gpt-5\.1(?!.*-(chat|pro|codex))(?![0-9]).*",
        thinking=_efforts("none", "low", "medium", "high", default=False),
        default_effort="none",
    ),
    msgspec.structs.replace(
        _GPT,
        models=r"gpt-5(?!\.)(?!.*-(chat|pro))(?![0-9]).*",
        refused=("logprobs", "top_logprobs", *_GPT.refused),
        thinking=_efforts("minimal", "low", "medium", "high"),
    ),
    _GPT,
    msgspec.structs.replace(_O, models=r"(o3(?!-mini)|o4)(?![0-9]).*", stops=_NO_STOPS),
    _O,
)
# "Unsupported parameter: 'max_tokens' is not supported with this model"; the newer name is for all models. "The
# 'metadata' parameter is only allowed when 'store' is enabled." "'tool_choice' is only allowed when 'tools' are
# specified." "Up to 4 sequences where the API will stop".
OPENAI: Final = RequestRules(
    limit="max_completion_tokens",
    ranges=_LIMIT,
    beside={"metadata": "store"},
    no_tools="absent",
    stops=StopRules(4),
    models=_OPENAI_MODELS,
)

# GPT refuses sampling while it reasons; newer ones and Grok answer "doesn't support the stopSequences field".
_BEDROCKS_GPT: Final = ModelRules(
    r"(openai\.)?gpt-[56](?![0-9]).*",
    refused_while_reasoning=("temperature", "top_p", *_PENALTIES),
)
BEDROCK: Final = RequestRules(
    limit="max_completion_tokens",
    ranges=_LIMIT,
    models=(
        ModelRules(r"(openai\.)?gpt-oss.*", refused=("logit_bias",)),
        msgspec.structs.replace(_BEDROCKS_GPT, models=r"(openai\.)?(gpt-5\.[6-9]|gpt-6)(?![0-9]).*", stops=_NO_STOPS),
        _BEDROCKS_GPT,
        ModelRules(r"(xai\.)?grok.*", refused=_PENALTIES, stops=_NO_STOPS),
    ),
)

# It counts `minimal` as low, `medium` and `xhigh` as high, and thinks unless it is told not to. "Thinking mode does not
# support this tool_choice": only auto and none pass there, any other one without it.
DEEPSEEK: Final = RequestRules(
    limit="max_tokens",
    ranges=_LIMIT,
    choices_while_thinking=_NO_FORCED,
    thinking=ThinkingRules(efforts=("low", "high", "max"), on=_TYPED_ON, off=_TYPED_OFF),
)

# "invalid temperature: only 1 is allowed for this model"; the default is refused as well. The effort is of K3 alone,
# which cannot be switched off, as K2.7 Code. A forced call is refused while they think; K3 accepts one of any function.
_KIMI_K: Final = ModelRules(
    r"kimi-k.*", refused=("temperature", "top_p", "n", *_PENALTIES), thinking=ThinkingRules(efforts=())
)
KIMI: Final = RequestRules(
    ranges=_LIMIT,
    stops=StopRules(5, longest=32),
    models=(
        msgspec.structs.replace(
            _KIMI_K,
            models=r"kimi-k3.*",
            thinking=ThinkingRules(efforts=("low", "high", "max")),
            choices_while_thinking=_WORDS,
        ),
        msgspec.structs.replace(_KIMI_K, models=r"kimi-k2\.7-code.*", choices_while_thinking=_NO_FORCED),
        msgspec.structs.replace(
            _KIMI_K,
            models=r"kimi-k2\.[56](?![0-9]).*",
            thinking=ThinkingRules(efforts=(), on=_TYPED_ON, off=_TYPED_OFF),
            choices_while_thinking=_NO_FORCED,
        ),
        _KIMI_K,
        ModelRules(r"moonshot-v1.*", ranges=_TO_ONE),
    ),
)

# From 4.5 to 5.1 an effort is refused; 5.3 always thinks, and knows three efforts. A limit above that of the model is
# refused with its range. The only choice is `auto`.
_GLM: Final = ThinkingRules(efforts=(), on=_TYPED_ON, off=_TYPED_OFF)
GLM: Final = RequestRules(
    limit="max_tokens",
    ranges={**_LIMIT, **_TO_ONE, "top_p": Range(0.01, 1)},
    choices=("auto",),
    models=(
        ModelRules(r"glm-4\.5.*", ranges=_limit(98_304), thinking=_GLM),
        ModelRules(r"glm-(4\.[6-9]|5|5\.[01])(?![.0-9]).*", ranges=_limit(131_072), thinking=_GLM),
        ModelRules(
            r"glm-5\.2(?![0-9]).*",
            ranges=_limit(131_072),
            thinking=ThinkingRules(on=_TYPED_ON, off=_TYPED_OFF),
        ),
        ModelRules(r"glm-5\.3(?![0-9]).*", ranges=_limit(131_072), thinking=_efforts("low", "high", "max")),
    ),
)

# M2 always thinks. Temperatures and top_p are above 0, and at most 1.
MINIMAX: Final = RequestRules(
    ranges={**_LIMIT, "temperature": Range(0.01, 1), "top_p": Range(0.01, 1)},
    models=(
        ModelRules(
            r"(?i:minimax-m3).*",
            thinking=ThinkingRules(efforts=(), on={"thinking": {"type": "adaptive"}}, off=_TYPED_OFF),
        ),
        ModelRules(r"(?i:minimax-m2).*", thinking=ThinkingRules(efforts=())),
    ),
)

# Temperatures are below 2. "parameter.enable_thinking must be set to false for non-streaming calls": its open models.
# An effort beside a budget is refused, and so is a forced call while they think.
_QWEN: Final = ThinkingRules(efforts=(), on={"enable_thinking": True}, off={"enable_thinking": False})


def _qwen(*efforts: str) -> ThinkingRules:
    return msgspec.structs.replace(_QWEN, efforts=efforts)


QWEN: Final = RequestRules(
    ranges={**_LIMIT, "temperature": Range(0, 1.99)},
    exclusive=(("reasoning_effort", "thinking_budget"),),
    choices_while_thinking=_NO_FORCED,
    thinking=_QWEN,
    models=(
        ModelRules(r"qwen3\.8-max.*", thinking=_qwen("low", "medium", "xhigh")),
        ModelRules(r"(deepseek-v4.*-[0-9]{4,}|glm-5\.3).*", thinking=_qwen("low", "high", "max")),
        ModelRules(r"(deepseek-v4|glm-5\.2).*", thinking=_qwen("high", "max")),
        ModelRules(
            r"qwen3(\.[0-9]+)?-[0-9.]+b(?!.*(instruct|thinking)).*",
            thinking=msgspec.structs.replace(_QWEN, streamed=True),
        ),
    ),
)

# Fields that it does not know are a 400, "Unknown name". Gemini 2.5 Pro and 3 cannot be switched off.
GEMINI: Final = RequestRules(
    ranges=_LIMIT,
    refused=("metadata", "prompt_cache_key", "frequency_penalty", "top_k", "reasoning", *_OPENAI_FIELDS),
    stops=StopRules(5),
    thinking=_efforts("none", "low", "medium", "high"),
    models=(ModelRules(r"gemini-(2\.5-pro|3).*", thinking=_efforts("low", "medium", "high")),),
)

# "temperature and top_p cannot both be specified for this model": from 4.5 on. From Opus 4.7 on no temperature but 1 is
# accepted, no top_p and no top_k. A temperature above 1 is lowered. Only stop sequences that are not blank work.
ANTHROPIC: Final = RequestRules(
    ranges=_TO_ONE,
    stops=StopRules(blank=False),
    models=(
        ModelRules(r"claude-(opus-4-[7-9]|[a-z]+-5)(?![0-9]).*", refused=("top_p", "top_k"), fixed={"temperature": 1}),
        ModelRules(r"claude-[a-z]+-4-[5-9](?![0-9]).*", exclusive=(("temperature", "top_p"),)),
    ),
)

# Another field than its schema has is a 422, `extra_forbidden`.
MISTRAL: Final = RequestRules(
    limit="max_tokens",
    ranges={**_LIMIT, "temperature": Range(0, 1.5)},
    renamed={"seed": "random_seed"},
    refused=("service_tier", *_OPENAI_FIELDS),
    no_tools="absent",
)

# "property 'prompt_cache_key' is unsupported". "The following fields are currently not supported and will result in a
# 400 error": logprobs, logit_bias, top_logprobs.
GROQ: Final = RequestRules(
    ranges=_LIMIT,
    refused=("metadata", "prompt_cache_key", "logprobs", "top_logprobs", "logit_bias", *_OPENAI_FIELDS),
    values={"service_tier": ("auto", "on_demand", "flex", "performance")},
    stops=_FOUR_STOPS,
    models=(
        ModelRules(r"gpt-oss.*", thinking=_efforts("low", "medium", "high")),
        ModelRules(r"qwen3\.8.*", thinking=_efforts("none", "low", "default", "medium", "high")),
        ModelRules(r"qwen3.*", thinking=_efforts("none", "default")),
    ),
)

# A field that it does not know is a 400, `wrong_api_format`; `parallel_tool_calls` false is one for gpt-oss.
_CEREBRAS: Final = _efforts("none", "low", "medium", "high")
CEREBRAS: Final = RequestRules(
    ranges=_LIMIT,
    refused=("metadata", *_OPENAI_FIELDS),
    stops=_FOUR_STOPS,
    thinking=_CEREBRAS,
    models=(ModelRules(r"gpt-oss.*", refused=("parallel_tool_calls",), thinking=_efforts("low", "medium", "high")),),
)

# Models that reason refuse the penalties and stop sequences, most of them also an effort.
_GROK: Final = ModelRules(
    r"grok-(4|code)(?!.*non-reasoning).*", refused=_PENALTIES, stops=_NO_STOPS, thinking=ThinkingRules(efforts=())
)
XAI: Final = RequestRules(
    ranges=_LIMIT,
    models=(
        msgspec.structs.replace(_GROK, models=r"grok-4\.20-multi-agent.*", thinking=_efforts(*_TO_XHIGH)),
        msgspec.structs.replace(
            _GROK,
            models=r"grok-4\.3(?![0-9])(?!.*non-reasoning).*",
            thinking=_efforts("none", "low", "medium", "high"),
        ),
        msgspec.structs.replace(
            _GROK, models=r"grok-4\.5(?![0-9])(?!.*non-reasoning).*", thinking=_efforts("low", "medium", "high")
        ),
        msgspec.structs.replace(
            _GROK, models=r"grok-4\.6(?![0-9])(?!.*non-reasoning).*", thinking=_efforts(*_TO_XHIGH)
        ),
        _GROK,
        ModelRules(r"grok-(3(?!-mini)|4).*", thinking=ThinkingRules(efforts=(), off={}, default=False)),
    ),
)

# `reasoning` and `reasoning_effort` that differ are an error.
OPENROUTER: Final = RequestRules(
    ranges=_LIMIT,
    stops=_FOUR_STOPS,
    exclusive=(("reasoning", "reasoning_effort"),),
    thinking=ThinkingRules(off=_ONLY_EFFORT),
)

# It has no field for one call at most.
TOGETHER: Final = RequestRules(limit="max_tokens", ranges=_LIMIT, refused=("parallel_tool_calls",))

# Both limits together are an error, and so are `thinking` and `reasoning_effort`. Harmony's models and MiniMax's cannot
# be switched off.
FIREWORKS: Final = RequestRules(
    limit="max_tokens",
    ranges=_LIMIT,
    stops=_FOUR_STOPS,
    exclusive=(("reasoning_effort", "thinking"),),
    thinking=_efforts("none", "low", "medium", "high"),
    models=(ModelRules(r"(gpt-oss|minimax).*", thinking=_efforts("low", "medium", "high")),),
)

# `max_tokens` is ignored, and the answer ends at 4,096 tokens.
SNOWFLAKE: Final = RequestRules(limit="max_completion_tokens", ranges=_limit(131_072))

# It knows no `tool_choice` and no `parallel_tool_calls`: both would be ignored.
OLLAMA: Final = RequestRules(
    limit="max_tokens",
    refused=("parallel_tool_calls",),
    choices=("auto",),
    thinking=_efforts("none", "low", "medium", "high"),
)

# "Invalid tool_choice type: 'object'. Supported string values: none, auto, required".
LM_STUDIO: Final = RequestRules(limit="max_tokens", choices=_WORDS)

# A limit of -1 is none, and 0 evaluates the prompt alone. A choice is a string. Of efforts older servers know none.
LLAMA_CPP: Final = RequestRules(
    choices=_WORDS,
    thinking=ThinkingRules(
        on={"chat_template_kwargs": {"enable_thinking": True}},
        off={"chat_template_kwargs": {"enable_thinking": False}},
    ),
)

# "max_tokens must be at least 1". "Stream options can only be defined when stream=True." An empty list of tools is a
# 400, and so is a choice without tools. Templates know one of two switches; models of Mistral's tokenizer have no
# template, and refuse what is for one.
VLLM: Final = RequestRules(
    ranges=_LIMIT,
    beside={"stream_options": "stream"},
    no_tools="absent",
    thinking=ThinkingRules(
        on={"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
        off={"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
    ),
    models=(
        ModelRules(
            r"(?i:.*(mistral|ministral|magistral|devstral|codestral|pixtral|voxtral|mixtral)).*",
            thinking=ThinkingRules(off=_ONLY_EFFORT),
        ),
    ),
)

# An effort sets the switches of the template itself; harmony's models know no `none`.
SGLANG: Final = RequestRules(
    ranges=_LIMIT,
    beside={"stream_options": "stream"},
    thinking=ThinkingRules(off=_ONLY_EFFORT),
    models=(ModelRules(r"(?i:gpt-oss).*", thinking=_efforts("low", "medium", "high")),),
)
