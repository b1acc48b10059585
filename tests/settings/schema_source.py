"""What the JSON Schema of the settings is made from: the built-in adapters, and the sentences of docs/settings.md."""

import pkgutil
import re
from typing import Final

from gateway.core.conversation import JsonObject
from gateway.registry import ADAPTERS
from gateway.settings.json_schema import AdapterKeys, settings_schema
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
# The words by which the page introduces the keys of an adapter.
INTRODUCTIONS: Final = {
    "anthropic_messages": "The Anthropic Messages adapter",
    "gemini": "The Gemini adapter",
    "openai_chat": "The OpenAI chat adapter",
    "openai_responses": "The OpenAI Responses adapter",
    "proto": "The protobuf adapter",
    "text": "The text adapter",
    "warp": "The Warp adapter",
}
_ROW: Final = re.compile(r"^\| `([a-z_.*]+)` \| .*? \| (?:yes|restart) \| (.*?) \|$", re.M)
_TABLE_END: Final = re.compile(r"\n\n(?!\|)")


def descriptions(text: str) -> dict[str, str]:
    """The sentences about keys in this part of the page, without links."""
    return {
        key: re.sub(r" ?\(\[[^]]*\]\([^)]*\)\)|\[([^]]*)\]\([^)]*\)", r"\1", said) for key, said in _ROW.findall(text)
    }


def adapter_part(name: str) -> str:
    begin = PAGE.index(INTRODUCTIONS[name])
    table = PAGE.index("\n| ", begin)
    found = _TABLE_END.search(PAGE, table)
    return PAGE[table : found.start() if found else None]


def made() -> JsonObject:
    """The schema that the file must hold."""
    adapters = [
        AdapterKeys((name, written), pkgutil.resolve_name(written).Options, descriptions(adapter_part(name)))
        for name, written in ADAPTERS.items()
    ]
    first = PAGE.index(INTRODUCTIONS["warp"])
    return settings_schema(adapters, descriptions(PAGE[:first]))
