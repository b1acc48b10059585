"""Finds the identifiers that several turns share: paths, hosts, versions, names of functions.

A result of a tool repeats many that are never needed. So only those count that the user or the model has used.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from gateway.core.conversation import Turn
from gateway.history.compress.job_request import speaker
from gateway.history.trim.truncate import shortened

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
