"""Lists every provider and server of models that is known, and finds them by name and by host."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from gateway.providers.anthropic import ANTHROPIC
from gateway.providers.bedrock import BEDROCK
from gateway.providers.cerebras import CEREBRAS
from gateway.providers.deepseek import DEEPSEEK
from gateway.providers.fireworks import FIREWORKS
from gateway.providers.gemini import GEMINI
from gateway.providers.glm import GLM
from gateway.providers.groq import GROQ
from gateway.providers.kimi import KIMI
from gateway.providers.minimax import MINIMAX
from gateway.providers.mistral import MISTRAL
from gateway.providers.ollama import OLLAMA
from gateway.providers.openai import AZURE, OPENAI
from gateway.providers.openrouter import OPENROUTER
from gateway.providers.other_servers import JAN, KOBOLDCPP, TGI
from gateway.providers.profile import NEUTRAL, Profile
from gateway.providers.provider import Provider
from gateway.providers.qwen import QWEN
from gateway.providers.snowflake import SNOWFLAKE
from gateway.providers.together import TOGETHER
from gateway.providers.vllm import LLAMA_CPP, LM_STUDIO, SGLANG, VLLM
from gateway.providers.xai import XAI

# Servers with the most particular signs come first; one that gives the same ones as another stands behind it.
PROVIDERS: Final[tuple[Provider, ...]] = (
    *(OPENAI, ANTHROPIC, GEMINI, OPENROUTER, DEEPSEEK, MISTRAL, GROQ, CEREBRAS, XAI, TOGETHER, FIREWORKS, QWEN, KIMI),
    *(MINIMAX, GLM, AZURE, SNOWFLAKE, BEDROCK),
    *(KOBOLDCPP, LLAMA_CPP, LM_STUDIO, SGLANG, TGI, VLLM, OLLAMA, JAN),
)
# By the names of settings; `none` demands nothing.
PROFILES: Final[dict[str, Profile]] = {
    "none": NEUTRAL,
    **{name: profile for provider in PROVIDERS for name, profile in provider.profiles.items()},
}
# The conventions' own names of providers in traces, by profile.
TRACE_NAMES: Final[Mapping[str, str]] = {
    profile: provider.trace_name for provider in PROVIDERS if provider.trace_name for profile in provider.profiles
}


def provider_of(base_url: str) -> Provider | None:
    """Returns the provider at the host of a URL, None for any other host."""
    return next((provider for provider in PROVIDERS if _profile_at(provider, base_url) is not None), None)


def known_profile(base_url: str) -> str | None:
    """Returns the profile for the host of a URL, None for any other host."""
    provider = provider_of(base_url)
    return None if provider is None else _profile_at(provider, base_url)


def hides_models(base_url: str) -> bool:
    """Returns whether the names of models at the host of a URL do not say which model it is."""
    provider = provider_of(base_url)
    return provider is not None and provider.deployments


def _profile_at(provider: Provider, base_url: str) -> str | None:
    host = urlsplit(base_url).hostname or ""
    return next((profile for pattern, profile in provider.hosts.items() if fnmatchcase(host, pattern)), None)
