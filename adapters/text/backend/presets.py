"""Defines the wires that have a name, and builds a Wire from a name or from an object in settings.json.

Sources: llama.cpp, server README, `POST /completion`; OpenAI, legacy `POST /v1/completions`; Ollama, API reference,
`/api/generate` and `/api/chat`; Text Generation Inference, `POST /generate_stream`; KoboldCpp, its API page,
`/api/extra/generate/stream`; the models list of each.
"""

import difflib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from adapters.text.backend.request_template import merged
from adapters.text.backend.wire import ModelPlaces, UsagePaths, Wire
from gateway.core.wrong_value import read_wrong_value

_OLLAMA: Final[Mapping[str, Any]] = {
    "model": "$model",
    "stream": True,
    "keep_alive": "$request.keep_alive",
    "format": "$schema",
    # Without it the server would silently truncate the beginning of a prompt that is too long.
    "options": {
        "num_ctx": 8192,
        "num_predict": "$max_tokens",
        "temperature": "$temperature",
        "top_p": "$top_p",
        "top_k": "$request.top_k",
        "seed": "$seed",
        "stop": "$stop",
    },
}
_PENALTIES: Final[Mapping[str, Any]] = {
    "frequency_penalty": "$request.frequency_penalty",
    "presence_penalty": "$request.presence_penalty",
}
_COMPLETIONS: Final[Mapping[str, Any]] = {
    "model": "$model",
    "prompt": "$prompt",
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_tokens": "$max_tokens",
    "temperature": "$temperature",
    "top_p": "$top_p",
    "seed": "$seed",
    "stop": "$stop",
    "user": "$request.user",
    **_PENALTIES,
}
_BESIDE: Final = ModelPlaces("/models")
_BELOW: Final = ModelPlaces("/v1/models")
_TAGS: Final = ModelPlaces("/api/tags", "models", "name")
_COMPLETIONS_USAGE: Final = UsagePaths("usage.prompt_tokens", "usage.completion_tokens", "usage.total_tokens")

PRESETS: Final[Mapping[str, Wire]] = {
    "llama_cpp": Wire(
        "/completion",
        {
            "prompt": "$prompt",
            "stream": True,
            "cache_prompt": True,
            "n_predict": "$max_tokens",
            "temperature": "$temperature",
            "top_p": "$top_p",
            "top_k": "$request.top_k",
            "min_p": "$request.min_p",
            "repeat_penalty": "$request.repeat_penalty",
            "seed": "$seed",
            "stop": "$stop",
            "json_schema": "$schema",
            **_PENALTIES,
        },
        text=("content",),
        final="stop",
        # Servers that predate `stop_type` report by flags.
        finish=("stop_type", "stopped_limit"),
        stopped_by="stopping_word",
        usage=UsagePaths("tokens_evaluated", "tokens_predicted"),
        models=_BELOW,
    ),
    "completions": Wire(
        "/completions",
        _COMPLETIONS,
        text=("choices[0].text",),
        finish=("choices[0].finish_reason",),
        last="[DONE]",
        usage=_COMPLETIONS_USAGE,
        max_stops=4,
        max_tokens=1024,
        models=_BESIDE,
    ),
    "vllm": Wire(
        "/completions",
        # Some models write a call with special tokens.
        {**_COMPLETIONS, "skip_special_tokens": False, "structured_outputs": {"json": "$schema"}},
        text=("choices[0].text",),
        finish=("choices[0].finish_reason",),
        stopped_by="choices[0].stop_reason",
        last="[DONE]",
        usage=_COMPLETIONS_USAGE,
        max_tokens=1024,
        models=_BESIDE,
    ),
    "ollama": Wire(
        "/api/generate",
        {**_OLLAMA, "prompt": "$prompt", "raw": True},
        "ndjson",
        text=("response",),
        reasoning=("thinking",),
        final="done",
        finish=("done_reason",),
        usage=UsagePaths("prompt_eval_count", "eval_count"),
        models=_TAGS,
    ),
    "ollama_chat": Wire(
        "/api/chat",
        {
            **_OLLAMA,
            "messages": [
                {"$with": "$system", "role": "system", "content": "$system"},
                {"role": "user", "content": "$transcript"},
            ],
        },
        "ndjson",
        text=("message.content",),
        reasoning=("message.thinking",),
        final="done",
        finish=("done_reason",),
        usage=UsagePaths("prompt_eval_count", "eval_count"),
        models=_TAGS,
    ),
    "tgi": Wire(
        "/generate_stream",
        {
            "inputs": "$prompt",
            "parameters": {
                "details": True,
                "return_full_text": False,
                "max_new_tokens": "$max_tokens",
                # TGI accepts neither a temperature of 0 nor a top_p of 1.
                "do_sample": "$samples",
                "temperature": "$temperature_above_0",
                "top_p": "$top_p_below_1",
                "seed": "$seed",
                "stop": "$stop",
                "grammar": {"$with": "$schema", "type": "json", "value": "$schema"},
                "frequency_penalty": "$request.frequency_penalty",
            },
        },
        text=("token.text",),
        hidden="token.special",
        finish=("details.finish_reason",),
        usage=UsagePaths("details.input_length", "details.generated_tokens"),
        max_stops=4,
        max_tokens=512,
        models=_BELOW,
    ),
    "koboldcpp": Wire(
        "/api/extra/generate/stream",
        {
            "prompt": "$prompt",
            "max_length": "$max_tokens",
            "temperature": "$temperature",
            "top_p": "$top_p",
            "top_k": "$request.top_k",
            "min_p": "$request.min_p",
            "sampler_seed": "$seed",
            "stop_sequence": "$stop",
            "trim_stop": True,
        },
        text=("token",),
        finish=("finish_reason",),
        max_tokens=512,
        models=_BELOW,
    ),
    "plain": Wire("", {"prompt": "$prompt"}, "text", ends="close"),
    "plain_sse": Wire("", {"prompt": "$prompt", "stream": True}, "sse_text", last="[DONE]"),
    "plain_ndjson": Wire(
        "",
        {"prompt": "$prompt", "stream": True},
        "ndjson",
        text=("text", "content", "token", "response", ""),
        reasoning=(),
        final="done",
        finish=("finish_reason",),
        usage=UsagePaths("usage.prompt_tokens", "usage.completion_tokens", "usage.total_tokens"),
    ),
}


def find_preset(chosen: str | Mapping[str, Any]) -> Wire:
    """Returns the wire with this name, or the wire that an object describes. Raises ValueError that names the fault."""
    if isinstance(chosen, str):
        return _named(chosen)
    own = dict(chosen)
    base = own.pop("base", None)
    if base is not None and not isinstance(base, str):
        raise ValueError("the wire's base must name a wire")
    described = own if base is None else merged(msgspec.to_builtins(_named(base)), own)
    try:
        return msgspec.convert(described, Wire)
    except msgspec.ValidationError as error:
        wrong = read_wrong_value(error)
        raise ValueError(f"wire.{wrong.path}: {wrong.reason}" if wrong.path else f"wire: {wrong.reason}") from error


def _named(name: str) -> Wire:
    if name not in PRESETS:
        nearest = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.5)
        advice = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(PRESETS)}"
        raise ValueError(f"there is no wire {name!r}{advice}")
    return PRESETS[name]
