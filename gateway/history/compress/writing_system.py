"""Checks whether a text is written in another script than it should be."""

import re
from collections.abc import Mapping
from typing import Final

# Few letters prove nothing: a name or a command looks like Latin in every language.
FEWEST_LETTERS: Final = 20
# Paths and identifiers are Latin everywhere. So a small share of another script tells the language of a text, and an
# even smaller one that a summary is in it.
_OWN_SHARE: Final = 0.2
_KEPT_SHARE: Final = 0.05
_LATIN_SHARE: Final = 0.5
# Japanese has kana among its Han characters, Chinese has none.
_KANA_SHARE: Final = 0.1

_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f]")
_SCRIPTS: Final[Mapping[str, re.Pattern[str]]] = {
    "Greek": re.compile("[\u0370-\u03ff]"),
    "Cyrillic": re.compile("[\u0400-\u052f]"),
    "Hebrew": re.compile("[\u0590-\u05ff]"),
    "Arabic": re.compile("[\u0600-\u06ff]"),
    "Devanagari": re.compile("[\u0900-\u097f]"),
    "Thai": re.compile("[\u0e00-\u0e7f]"),
    "Hangul": re.compile("[\uac00-\ud7a3]"),
    "kana": re.compile("[\u3040-\u30ff]"),
    "Han": re.compile("[\u4e00-\u9fff]"),
}


def is_other_script(text: str, spoken: str) -> bool:
    """Returns whether `text` lacks the script in which `spoken` is written. False where one of them says too little."""
    asked, found = _counts(spoken), _counts(text)
    if sum(asked.values()) < FEWEST_LETTERS or sum(found.values()) < FEWEST_LETTERS:
        return False
    own = _own_script(asked)
    if own is None:
        return found["Latin"] < _LATIN_SHARE * sum(found.values())
    return found[own] < _KEPT_SHARE * sum(found.values())


def _own_script(counts: Mapping[str, int]) -> str | None:
    """Returns the script beside Latin that the text is written in; None: it is Latin."""
    total = sum(counts.values())
    if counts["kana"] > _KANA_SHARE * (counts["kana"] + counts["Han"]) and counts["kana"] > _KEPT_SHARE * total:
        return "kana"
    script = max(_SCRIPTS, key=lambda name: counts[name])
    return script if counts[script] > _OWN_SHARE * total else None


def _counts(text: str) -> dict[str, int]:
    found = {name: len(letters.findall(text)) for name, letters in _SCRIPTS.items()}
    return {**found, "Latin": len(_LATIN.findall(text))}
