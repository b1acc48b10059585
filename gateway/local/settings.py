"""Builds the settings that serve a local model server."""

from typing import Final

from gateway.core.conversation import Json

MODEL: Final = "smollm2"
# The same model with one raw text to continue.
RAW: Final = "smollm2-raw"
# The default limit for clients that set none: a model of this size does not always stop by itself.
MOST_TOKENS: Final = 512
# The same text inside the model's own template, so that the model answers instead of continuing the text.
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
    # The first event holds the role and nothing else.
    "hidden": "choices[0].delta.role",
    "finish": ["choices[0].finish_reason"],
    "last": "[DONE]",
    "max_tokens": MOST_TOKENS,
    "usage": {
        "prompt": "usage.prompt_tokens",
        "completion": "usage.completion_tokens",
        "total": "usage.total_tokens",
    },
}
CONTINUED: Final[dict[str, Json]] = {"base": "llama_cpp", "max_tokens": MOST_TOKENS}
# The server handles one request at a time: the next waits in its queue, and a full context takes a minute or more to
# read.
PATIENT: Final[dict[str, Json]] = {"first_byte": 600, "total": 1200}
# llama.cpp's server closes the connection after every stream without announcing it, perhaps just as the next request is
# sent.
NEW_CONNECTION: Final[dict[str, Json]] = {"connection": "close"}


def backend_for_model(base_url: str, wire: Json = "llama_cpp") -> dict[str, Json]:
    """Returns the model server's entry below `backends`."""
    return {
        "adapter": "text",
        "wire": wire,
        "base_url": base_url,
        "timeouts": PATIENT,
        "headers": NEW_CONNECTION,
    }


def settings_for_model(base_url: str) -> dict[str, Json]:
    """Returns the content of a settings.json for this model."""
    return {
        "backends": {
            "local": backend_for_model(base_url, TEMPLATED),
            "local-raw": backend_for_model(base_url, CONTINUED),
        },
        "models": {MODEL: {"backend": "local"}, RAW: {"backend": "local-raw"}},
        "log": {"file": None},
    }
