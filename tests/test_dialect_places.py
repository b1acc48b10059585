"""Only a dialect, its adapter, the demo backends and the registry know the words of a client's format."""

import re
from pathlib import Path
from typing import Final

from tests.paths import ROOT

WORDS: Final = re.compile(rb"openai_chat|chat\.completion|chatcmpl")
PLACES: Final = ("gateway/dialects/openai_chat/", "adapters/openai_chat/", "gateway/demo/", "gateway/registry.py")


def _found(root: Path) -> dict[str, list[bytes]]:
    files = [path for package in ("gateway", "adapters") for path in sorted((root / package).rglob("*.py*"))]
    sources = {str(path.relative_to(root)): path.read_bytes() for path in files if path.suffix in (".py", ".pyi")}
    return {name: found for name, source in sources.items() if (found := WORDS.findall(source))}


def test_no_other_place_knows_a_format_by_name() -> None:
    found = _found(ROOT)
    assert {name: words for name, words in found.items() if not name.startswith(PLACES)} == {}
    assert {place for place in PLACES if not any(name.startswith(place) for name in found)} == set()
