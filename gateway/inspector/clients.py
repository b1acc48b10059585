"""Names the client program of a request by its user agent: one table, which is all that is believed of the header.

What a client sends as its user agent is a claim, and any text: of a program that the table does not know, the name of
its first product is shown (RFC 9110, section 10.1.5), if it is a short word and no secret.
"""

import re
from functools import lru_cache
from typing import Final

from gateway.core.secrets import without_secrets

# The name of a product, in lower case, or the beginning of one -> the program. The first that fits wins. The names are
# those that programs send: codex_cli_rs/0.169.0 (...), claude-cli/2.1.330 (external, cli), AsyncOpenAI/Python 2.8.0.
_CLIENTS: Final = (
    ("codex", "Codex"),
    ("claude-cli", "Claude Code"),
    ("claude-code", "Claude Code"),
    ("geminicli", "Gemini CLI"),
    ("qwencode", "Qwen Code"),
    ("opencode", "opencode"),
    ("roocode", "Roo Code"),
    ("kilo-code", "Kilo Code"),
    ("cline", "Cline"),
    ("zed", "Zed"),
    ("librechat", "LibreChat"),
    ("open-webui", "Open WebUI"),
    ("litellm", "LiteLLM"),
    ("openai/python", "openai SDK (Python)"),
    ("asyncopenai/python", "openai SDK (Python)"),
    ("openai/js", "openai SDK (JS)"),
    ("openai/", "openai SDK"),
    ("anthropic/python", "anthropic SDK (Python)"),
    ("asyncanthropic/python", "anthropic SDK (Python)"),
    ("anthropic/js", "anthropic SDK (JS)"),
    ("anthropic/", "anthropic SDK"),
    ("google-genai-sdk", "google-genai SDK"),
    ("ollama-python", "ollama SDK (Python)"),
    ("ollama-js", "ollama SDK (JS)"),
    ("ollama", "ollama"),
    ("ai-sdk", "AI SDK"),
    ("ai/", "AI SDK"),
    ("dragoman", "Dragoman"),
    ("curl", "curl"),
    ("python-httpx", "httpx"),
    ("python-requests", "requests"),
    ("aiohttp", "aiohttp"),
    ("node", "Node.js"),
    ("undici", "Node.js"),
    ("axios", "axios"),
    ("go-http-client", "Go"),
    ("mozilla", "a browser"),
)
_PRODUCT: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}(?=/|\s|\Z)")
_VERSION: Final = re.compile(r"[/ ]v?(\d[0-9A-Za-z.]{0,15})(?=[\s(/;,]|\Z)")
# A browser says the version of Mozilla, not its own.
_UNVERSIONED: Final = frozenset({"a browser"})
# So many characters of a user agent are looked at.
LONGEST: Final = 200


@lru_cache(maxsize=1024)
def client_name(user_agent: bytes, secrets: tuple[str, ...] = ()) -> str:
    """Returns the name of the program with its version, as `Codex 0.169.0`; empty where the header tells none.
    `secrets` are values that are no names, whoever sends them."""
    text = user_agent[:LONGEST].decode("latin-1")
    lower = text.lower()
    for beginning, name in _CLIENTS:
        if lower.startswith(beginning) and (beginning[-1] == "/" or not lower[len(beginning) :][:1].isalpha()):
            version = None if name in _UNVERSIONED else _VERSION.search(text, len(beginning) - 1)
            return _clean(name if version is None else f"{name} {version[1]}", name, secrets)
    product = _PRODUCT.match(text)
    return "" if product is None else _clean(product[0], "", secrets)


def _clean(name: str, otherwise: str, secrets: tuple[str, ...]) -> str:
    """Returns the name, or what stands in place of one with a secret in it."""
    return name if without_secrets(name, secrets) == name else otherwise
