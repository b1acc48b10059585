"""Checks a summary against the turns that it covers: the identifiers that several of them share, and the script.

A result of a tool repeats many identifiers that are never needed. So only those count that the user or the model has
used.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from gateway.core.conversation import Turn
from gateway.history.trim.truncate import shortened
from gateway.memory.summaries.job_request import speaker

# The turns that must hold an identifier, and the number of identifiers that are looked at.
SHARED_BY: Final = 3
MOST: Final = 24
# Of a longer text, the beginning and the end are read.
_READ: Final = 8_000
_WORD: Final = re.compile(r"[\w./:@\\-]{4,}")
_ENDS: Final = "./:@\\-"
_LENGTHS: Final = range(4, 81)
_TELLING: Final = re.compile(r"[./:@\\_-]|[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|\d{4}")


def shared_identifiers(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Returns the identifiers that stand in most turns, 24 at most, each in three or more turns."""
    seen: Counter[str] = Counter()
    used: set[str] = set()
    for turn in turns:
        words = dict.fromkeys(word.strip(_ENDS) for text in _texts(turn) for word in _WORD.findall(text))
        seen.update([*words])
        if speaker(turn) != "tool":
            used.update(words)
    shared = (word for word, count in seen.most_common() if count >= SHARED_BY and word in used)
    return tuple(islice((word for word in shared if len(word) in _LENGTHS and _TELLING.search(word)), MOST))


def _texts(turn: Turn) -> list[str]:
    texts = [turn.text, *(call.arguments for call in turn.calls), *(result.text for result in turn.results)]
    return [shortened(text, _READ) for text in texts]


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
