"""Finds values of a backend's entry that are valid and hardly meant: a placeholder of an example, and a base URL with
the path that the adapter adds."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from gateway.settings.values import BackendSettings

# What examples and documents of providers write in the place of a value: <key>, {account}, ${KEY}, YOUR_KEY, sk-...
_PLACEHOLDER: Final = re.compile(
    r"<[^<>]+>|\{[^{}]*\}|\$[A-Za-z_]|\.\.\.|…|\byour[-_]|[-_]here\b|change[-_]?me|replace[-_]?me|\bTODO\b",
    re.IGNORECASE,
)
# Names that belong to nobody (RFC 2606), and the word that stands for a host in our own examples.
_NOBODYS: Final = re.compile(r"host|(.*\.)?(example|invalid)|(.*\.)?example\.(com|net|org)")
# As init and documents write the part that is one's own: https://NAME.openai.azure.com.
_CAPITALS: Final = re.compile(r"(^|\.)[A-Z][A-Z_-]{2,}(\.|:|$)")
# How the paths of requests end, which adapters add themselves.
_REQUEST_PATHS: Final = ("/chat/completions", "/responses", "/messages")


def is_placeholder(text: str) -> bool:
    """Returns whether a text stands for a value that somebody was to put in its place."""
    return _PLACEHOLDER.search(text) is not None


def unlikely_values(where: str, entry: BackendSettings) -> Iterator[str]:
    """Yields a sentence for each such value of the entry at a place of the settings."""
    advice = "looks like a placeholder: put your own value there"
    if _names_nobody(entry.base_url):
        yield f"{where}.base_url {advice}"
    yield from (f"{where}.headers.{name} {advice}" for name, value in entry.headers.items() if is_placeholder(value))
    url = entry.base_url.rstrip("/")
    for ending in _REQUEST_PATHS:
        if url.endswith(ending):
            yield f"{where}.base_url: the adapter adds the path of a request: write {url.removesuffix(ending)}"


def _names_nobody(url: str) -> bool:
    parts = urlsplit(url)
    if is_placeholder(url) or _CAPITALS.search(parts.netloc):
        return True
    return _NOBODYS.fullmatch(parts.hostname or "") is not None
