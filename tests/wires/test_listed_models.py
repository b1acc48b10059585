"""What the lists of backends say of their models, in the forms that providers publish."""

import json
from typing import Final

import pytest

from gateway.adapter import BackendModel, ListingAdapter
from gateway.core.conversation import Json
from gateway.core.model_facts import ModelFacts
from gateway.registry import load_adapter
from gateway.settings.values import BackendSettings

# Each entry has the fields that the provider's reference lists, as far as they say what a model is like.
ENTRIES: Final[dict[str, tuple[str, dict[str, Json], BackendModel]]] = {
    "openai says nothing": (
        "openai_chat",
        {"id": "m", "object": "model", "created": 1, "owned_by": "openai"},
        BackendModel("m"),
    ),
    "openrouter": (
        "openai_chat",
        {
            "id": "vendor/m",
            "name": "Vendor: M",
            "context_length": 262144,
            "architecture": {"input_modalities": ["text", "image", "file"], "output_modalities": ["text"]},
            "top_provider": {"context_length": 131072, "max_completion_tokens": 65536, "is_moderated": False},
            "supported_parameters": ["max_tokens", "tools", "tool_choice", "reasoning"],
        },
        BackendModel(
            "vendor/m",
            131072,
            ModelFacts(display_name="Vendor: M", max_output=65536, tools=True, images=True, files=True),
        ),
    ),
    "openrouter without tools": (
        "openai_responses",
        {
            "id": "m",
            "context_length": 4096,
            "architecture": {"input_modalities": ["text"]},
            "top_provider": {"context_length": None, "max_completion_tokens": None},
            "supported_parameters": ["max_tokens"],
        },
        BackendModel("m", 4096, ModelFacts(tools=False, images=False, files=False)),
    ),
    "vllm": ("openai_chat", {"id": "m", "root": "/models/m", "max_model_len": 32768}, BackendModel("m", 32768)),
    "groq": (
        "openai_chat",
        {"id": "m", "active": True, "context_window": 131072, "max_completion_tokens": 8192},
        BackendModel("m", 131072, ModelFacts(max_output=8192)),
    ),
    "mistral": (
        "openai_chat",
        {
            "id": "m",
            "name": "m",
            "max_context_length": 32768,
            "capabilities": {"function_calling": True, "vision": False},
        },
        BackendModel("m", 32768, ModelFacts(tools=True, images=False)),
    ),
    "fireworks": (
        "openai_chat",
        {"id": "m", "context_length": 8192, "supports_tools": False, "supports_image_input": True},
        BackendModel("m", 8192, ModelFacts(tools=False, images=True)),
    ),
    "llama.cpp": (
        "openai_chat",
        {"id": "m", "meta": {"n_ctx": 16384, "n_ctx_train": 262144}},
        BackendModel("m", 16384),
    ),
    "llama.cpp that does not say what it serves": (
        "openai_chat",
        {"id": "m", "meta": {"n_ctx_train": 262144}},
        BackendModel("m"),
    ),
    "anthropic": (
        "anthropic_messages",
        {
            "type": "model",
            "id": "m",
            "display_name": "M 1",
            "max_input_tokens": 200000,
            "max_tokens": 64000,
            "capabilities": {
                "image_input": {"supported": True},
                "pdf_input": {"supported": False},
                "effort": {
                    "supported": True,
                    "low": {"supported": True},
                    "medium": {"supported": True},
                    "high": {"supported": True},
                    "max": {"supported": False},
                    "xhigh": None,
                },
            },
        },
        BackendModel(
            "m",
            200000,
            ModelFacts(
                display_name="M 1", max_output=64000, images=True, files=False, efforts=("low", "medium", "high")
            ),
        ),
    ),
    "anthropic without efforts": (
        "anthropic_messages",
        {"id": "m", "capabilities": {"effort": {"supported": False, "low": {"supported": False}}}},
        BackendModel("m", None, ModelFacts(efforts=())),
    ),
    "gemini": (
        "gemini",
        {"name": "models/m", "displayName": "M", "inputTokenLimit": 1048576, "outputTokenLimit": 65536},
        BackendModel("m", 1048576, ModelFacts(display_name="M", max_output=65536)),
    ),
}
BASE: Final = "http://127.0.0.1:9"


def decoded(adapter: str, entry: Json) -> tuple[str | BackendModel, ...]:
    found = load_adapter("b", BackendSettings(adapter, BASE), 2**20)
    assert isinstance(found, ListingAdapter)
    key = "models" if adapter == "gemini" else "data"
    return found.decode_models(json.dumps({key: [entry]}).encode())


@pytest.mark.parametrize("form", ENTRIES)
def test_a_published_form_is_read(form: str) -> None:
    adapter, entry, expected = ENTRIES[form]
    assert decoded(adapter, entry) == (expected,)


WRONG: Final[dict[str, dict[str, Json]]] = {
    "a text": {"context_length": "32768", "supports_tools": "yes", "name": 7},
    "a truth for a number": {"context_length": True, "max_completion_tokens": False},
    "nothing": {"context_length": 0, "max_completion_tokens": -1, "name": ""},
    "too many": {"context_length": 10**12},
    "a fraction": {"context_length": 4096.5},
    "other shapes": {"top_provider": [], "architecture": {"input_modalities": "image"}, "capabilities": 3, "meta": "x"},
    "null": {"top_provider": None, "architecture": None, "supported_parameters": None, "context_length": None},
}


@pytest.mark.parametrize("form", WRONG)
def test_a_value_of_another_kind_is_not_known(form: str) -> None:
    assert decoded("openai_chat", {"id": "m", **WRONG[form]}) == (BackendModel("m"),)
