"""The profiles of providers by the hosts of their OpenAI-compatible APIs."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

# A star stands for the name of an account or a region.
KNOWN_HOSTS: Final[Mapping[str, str]] = {
    "api.openai.com": "openai",
    "*.openai.azure.com": "azure",
    "*.services.ai.azure.com": "azure",
    "api.deepseek.com": "deepseek-thinking",
    "api.moonshot.ai": "kimi-thinking",
    "api.moonshot.cn": "kimi-thinking",
    "api.minimax.io": "minimax",
    "api.minimaxi.com": "minimax",
    "api.z.ai": "glm",
    "open.bigmodel.cn": "glm",
    "dashscope.aliyuncs.com": "qwen",
    "dashscope-intl.aliyuncs.com": "qwen",
    "openrouter.ai": "openrouter",
    "generativelanguage.googleapis.com": "gemini",
    "api.anthropic.com": "anthropic-compat",
    "api.mistral.ai": "mistral",
    "api.groq.com": "groq",
    "api.cerebras.ai": "cerebras",
    "api.x.ai": "xai",
    "api.together.xyz": "together",
    "api.together.ai": "together",
    "api.fireworks.ai": "fireworks",
    "*.snowflakecomputing.com": "snowflake",
    "bedrock-runtime.*.amazonaws.com": "bedrock",
}


# Their models go by the names of deployments, which users choose.
_DEPLOYMENTS: Final = frozenset({"azure"})


def hides_models(base_url: str) -> bool:
    """Returns whether the names of models at the host of a URL do not say which model it is."""
    return known_profile(base_url) in _DEPLOYMENTS


def known_profile(base_url: str) -> str | None:
    """Returns the profile for the host of a URL, None for any other host."""
    host = urlsplit(base_url).hostname or ""
    return next((profile for pattern, profile in KNOWN_HOSTS.items() if fnmatchcase(host, pattern)), None)
