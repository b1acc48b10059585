"""The first settings file: what it says of each server."""

import json
from typing import Final

import pytest

from gateway.core.conversation import Conversation, Sampling, Text, Turn
from gateway.core.policy import Policy
from gateway.diagnostics.entry_check import entry_faults
from gateway.discovery.identify import Server
from gateway.discovery.new_settings import MOST_MODELS, hosted_backend, local_backend, new_settings, server_backend
from gateway.discovery.server_kinds import HOSTED_KINDS, SERVER_KINDS
from gateway.providers.provider import HostedKind
from gateway.providers.registry import PROFILES, known_profile
from gateway.registry import load_adapter
from gateway.settings import parse_settings

KINDS: Final = {kind.name: kind for kind in SERVER_KINDS}


def test_the_file_has_a_dozen_lines() -> None:
    backend = local_backend(KINDS["ollama"], "http://127.0.0.1:11434", ("llama3.2", 'a"b é'))
    assert new_settings([backend], 8010).splitlines() == [
        "{",
        '  "$schema": "./settings.schema.json",',
        '  "server": {"port": 8010},',
        '  "backends": {',
        '    "ollama": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:11434/v1", "profile": "ollama-compat"}',
        "  },",
        '  "models": {',
        '    "llama3.2": {"backend": "ollama"},',
        '    "a\\"b é": {"backend": "ollama"},',
        '    "*": {"backend": "ollama"}',
        "  }",
        "}",
    ]


def test_two_servers_with_the_same_model_are_told_apart() -> None:
    one = local_backend(KINDS["ollama"], "http://127.0.0.1:11434", ("m",))
    other = local_backend(KINDS["vllm"], "http://127.0.0.1:8000", ("m",), locked=True)
    found = parse_settings(new_settings([one, other], 8000))
    assert {name: (entry.backend, entry.name) for name, entry in found.models.items()} == {
        "m": ("ollama", None),
        "vllm/m": ("vllm", "m"),
        "*": ("ollama", None),
    }
    assert found.backends["vllm"].api_key_env == "VLLM_API_KEY" and found.server.port == 8000


def test_two_servers_of_one_kind_are_two_backends() -> None:
    kind = KINDS["openai-compatible"]
    servers = [local_backend(kind, f"http://127.0.0.1:{port}", (f"m{port}", "same")) for port in (1, 2, 3)]
    found = parse_settings(new_settings(servers, 8000))
    assert {name: entry.base_url for name, entry in found.backends.items()} == {
        "openai-compatible": "http://127.0.0.1:1/v1",
        "openai-compatible-2": "http://127.0.0.1:2/v1",
        "openai-compatible-3": "http://127.0.0.1:3/v1",
    }
    assert found.models["m2"].backend == "openai-compatible-2"
    assert found.models["openai-compatible-3/same"].backend == "openai-compatible-3"


@pytest.mark.parametrize(
    ("listed", "name"),
    [
        ("/models/Qwen3-4B.Q4_1.gguf", "Qwen3-4B.Q4_1"),
        ("C:\\models\\Qwen3-4B.gguf", "Qwen3-4B"),
        ("/srv/Llama-3.2", "Llama-3.2"),
        ("/", "/"),
    ],
)
def test_a_model_that_is_listed_by_its_path_is_called_by_its_file(listed: str, name: str) -> None:
    found = parse_settings(new_settings([local_backend(KINDS["llama-cpp"], "http://127.0.0.1:8080", (listed,))], 8000))
    assert found.models[name].name == (None if name == listed else listed)


@pytest.mark.parametrize("name", ["meta/Llama-3.2", "qwen3:4b", "m.gguf"])
def test_any_other_name_stays(name: str) -> None:
    found = parse_settings(new_settings([local_backend(KINDS["vllm"], "http://127.0.0.1:8000", (name,))], 8000))
    assert found.models[name].name is None


def test_models_without_conversations_and_patterns_are_left_out() -> None:
    names = ("text-embedding-nomic", "bge-reranker", "m*", "m", *(f"m{number}" for number in range(99)))
    backend = local_backend(KINDS["lm-studio"], "http://127.0.0.1:1234", names)
    assert backend.models[:2] == ("m", "m0") and len(backend.models) == MOST_MODELS


def test_an_unknown_server_has_no_backend() -> None:
    assert server_backend(Server("http://127.0.0.1:1", None)) is None


@pytest.mark.parametrize("kind", SERVER_KINDS, ids=lambda kind: kind.name)
def test_the_entry_of_a_server_can_be_used(kind: object) -> None:
    found = parse_settings(new_settings([local_backend(kind, "http://127.0.0.1:1")], 8000))  # type: ignore[arg-type]
    ((name, entry),) = found.backends.items()
    assert list(entry_faults(name, entry, 1 << 20)) == []


@pytest.mark.parametrize("kind", HOSTED_KINDS, ids=lambda kind: kind.name)
def test_the_entry_of_a_provider_can_be_used(kind: object) -> None:
    text = new_settings([hosted_backend(kind)], 8000)  # type: ignore[arg-type]
    ((name, entry),) = parse_settings(text).backends.items()
    assert list(entry_faults(name, entry, 1 << 20)) == []
    assert json.loads(text)["backends"][name]["api_key_env"].endswith(("_API_KEY", "_BEDROCK"))


@pytest.mark.parametrize(
    "kind", [kind for kind in HOSTED_KINDS if kind.adapter == "openai_chat"], ids=lambda kind: kind.name
)
def test_the_entry_of_a_provider_has_the_profile_of_its_host(kind: HostedKind) -> None:
    assert kind.profile is not None and kind.profile == known_profile(kind.base_url)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("vllm", "vllm"),
        ("llama-cpp", "llama-cpp"),
        ("lm-studio", "lm-studio"),
        ("sglang", "sglang"),
        ("ollama", "ollama-compat"),
        ("koboldcpp", None),
    ],
)
def test_the_entry_of_a_server_has_its_profile(name: str, profile: str | None) -> None:
    assert local_backend(KINDS[name], "http://127.0.0.1:1").entry.get("profile") == profile


def test_each_provider_with_a_profile_can_be_chosen() -> None:
    local = {kind.profile for kind in SERVER_KINDS}
    hosted = {kind.profile for kind in HOSTED_KINDS}
    # Chosen by hand: Ollama's own API, DeepSeek without thinking, and the compatible APIs of providers with another.
    governed = {name for name, profile in PROFILES.items() if profile.request_rules is not None}
    assert governed - local - hosted == {"ollama", "deepseek", "gemini", "anthropic-compat"}


# The addresses in the providers' own references of their APIs; that of Gemini is also the default of google-genai 3.6.
PUBLISHED: Final = {
    "openai": "https://api.openai.com/v1/chat/completions",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
    "openrouter": "https://openrouter.ai/api/v1/chat/completions",
    "deepseek": "https://api.deepseek.com/v1/chat/completions",
    "mistral": "https://api.mistral.ai/v1/chat/completions",
    "groq": "https://api.groq.com/openai/v1/chat/completions",
    "cerebras": "https://api.cerebras.ai/v1/chat/completions",
    "xai": "https://api.x.ai/v1/chat/completions",
    "together": "https://api.together.xyz/v1/chat/completions",
    "fireworks": "https://api.fireworks.ai/inference/v1/chat/completions",
    "qwen": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions",
    "kimi": "https://api.moonshot.ai/v1/chat/completions",
    "minimax": "https://api.minimax.io/v1/chat/completions",
    "glm": "https://api.z.ai/api/paas/v4/chat/completions",
    "azure": "https://NAME.openai.azure.com/openai/v1/chat/completions",
    "snowflake": "https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1/chat/completions",
    "bedrock": "https://bedrock-runtime.REGION.amazonaws.com/openai/v1/chat/completions",
}


@pytest.mark.parametrize("kind", HOSTED_KINDS, ids=lambda kind: kind.name)
def test_the_entry_of_a_provider_leads_to_its_published_address(kind: HostedKind) -> None:
    ((_, entry),) = parse_settings(new_settings([hosted_backend(kind)], 8000)).backends.items()
    adapter = load_adapter(entry.adapter, entry, 1 << 20)
    asked = Conversation((Turn("user", (Text("hi"),)),), model="m", sampling=Sampling(max_tokens=9))
    assert entry.base_url + adapter.encode(asked, Policy()).path == PUBLISHED[kind.name]
