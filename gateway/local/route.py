"""The address of a local model server -> the settings that serve it."""

from typing import Final

from gateway.types import Json

MODEL: Final = "smollm2"
# The same model given one bare text to go on with.
RAW: Final = "smollm2-raw"
# The same text inside the model's own template, which makes it answer rather than go on.
TEMPLATED: Final[dict[str, Json]] = {
    "path": "/v1/chat/completions",
    "request": {
        "messages": [
            {"$with": "$system", "role": "system", "content": "$system"},
            {"role": "user", "content": "$transcript"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": "$max_tokens",
        "temperature": "$temperature",
        "top_p": "$top_p",
        "seed": "$seed",
        "stop": "$stop",
        "json_schema": "$schema",
    },
    "text": ["choices[0].delta.content"],
    # The first event tells the role and nothing else.
    "hidden": "choices[0].delta.role",
    "finish": ["choices[0].finish_reason"],
    "last": "[DONE]",
    "usage": {
        "prompt": "usage.prompt_tokens",
        "completion": "usage.completion_tokens",
        "total": "usage.total_tokens",
    },
}
# One answer at a time: the next waits for its turn, and a full context is read for a minute or more.
PATIENT: Final[dict[str, Json]] = {"first_byte": 600, "total": 1200}
# llama.cpp's server hangs up behind every stream without having said so, perhaps just when the next request comes.
NEW_CONNECTION: Final[dict[str, Json]] = {"connection": "close"}


def backend_for_model(base_url: str, wire: Json = "llama_cpp") -> dict[str, Json]:
    """The model server's entry below `backends`."""
    return {
        "adapter": "adapters.text:TextAdapter",
        "wire": wire,
        "base_url": base_url,
        "timeouts": PATIENT,
        "headers": NEW_CONNECTION,
    }


def settings_for_model(base_url: str) -> dict[str, Json]:
    """What a settings.json for this model would hold."""
    return {
        "backends": {"local": backend_for_model(base_url, TEMPLATED), "local-raw": backend_for_model(base_url)},
        "models": {MODEL: {"backend": "local"}, RAW: {"backend": "local-raw"}},
        "log": {"file": None},
    }
