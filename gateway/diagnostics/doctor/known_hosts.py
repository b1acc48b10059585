"""The profiles of providers by the hosts of their OpenAI-compatible APIs."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

KNOWN_HOSTS: Final[Mapping[str, str]] = {
    "api.openai.com": "openai",
    "api.deepseek.com": "deepseek",
    "api.moonshot.ai": "kimi-thinking",
    "api.moonshot.cn": "kimi-thinking",
    "api.minimax.io": "minimax",
    "api.z.ai": "glm",
    "openrouter.ai": "openrouter",
    "generativelanguage.googleapis.com": "gemini",
    "api.anthropic.com": "anthropic-compat",
    "api.mistral.ai": "mistral",
    "api.groq.com": "groq",
}


def known_profile(base_url: str) -> str | None:
    """Returns the profile for the host of a URL, None for any other host."""
    return KNOWN_HOSTS.get(urlsplit(base_url).hostname or "")
