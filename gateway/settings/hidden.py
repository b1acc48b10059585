"""Hides what may be a secret in settings that are shown: header values, and the credential and query of an address."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from gateway.core.conversation import Json

HIDDEN: Final = "(hidden)"
# Objects of header fields, which may hold keys.
_SECRET_OBJECTS: Final = ("headers", "metadata")
# A text, and the colon behind it where it is a key.
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?')


def shown_value(path: str, value: Any) -> Any:
    """Returns the value of the key at a path without what may be a secret. (Any: JSON, or a Struct.)"""
    value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        hides = path.rpartition(".")[2] in _SECRET_OBJECTS
        return {key: HIDDEN if hides else shown_value(f"{path}.{key}", below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [shown_value(path, item) for item in value]
    return shown_address(value) if isinstance(value, str) else value


def shown_address(text: str) -> str:
    """Returns a URL without its credential and its query; any other text as it is."""
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return HIDDEN
    credential, at, host = parts.netloc.rpartition("@")
    query = HIDDEN if parts.query else ""
    return parts._replace(netloc=f"{HIDDEN}@{host}" if credential or at else host, query=query).geturl()


def shown_text(text: str) -> str:
    """Returns the (well-formed) JSON text of settings without what may be a secret; every other character stays."""
    secrets = frozenset(_header_values(json.loads(text)))

    def shown(found: re.Match[str]) -> str:
        if found[1]:
            return found[0]
        value = json.loads(found[0])
        kept = HIDDEN if value in secrets else shown_address(value)
        return found[0] if kept == value else json.dumps(kept, ensure_ascii=False)

    return _STRING.sub(shown, text)


def _header_values(value: Json, within: bool = False) -> Iterator[str]:
    """Yields the texts below the objects of header fields."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _header_values(below, within or key in _SECRET_OBJECTS)
    elif isinstance(value, list):
        for item in value:
            yield from _header_values(item, within)
    elif within and isinstance(value, str):
        yield value
