"""Writes the words of a reply: a few sentences in response to a question, and quotations.

A quotation is written so that no client takes it for an edit of its user's files.
"""

import re
from collections.abc import Callable
from itertools import cycle, islice
from typing import Final

from gateway.demo.scripted_model.phrase_values import number

_LONGEST: Final = 20_000
_SHOWN: Final = 200
_NUMBER: Final = r"(\d{1,6}|one|two|three|four|five|six|seven|eight|nine|ten)"
_FILL: Final = (
    "The gateway carries every word from the client to the backend and back and says what it changed on the way so "
    "that nobody has to guess what a model was really asked or what it really said"
)


def answer(question: str) -> str:
    """Writes a deterministic response; it can repeat, count, write a number of words, and return a greeting."""
    text = question.strip()
    for pattern, write in _SKILLS:
        if found := pattern.search(text):
            return write(found)
    # On one line, so that no part of it begins a line of the response.
    text = " ".join(text.split())
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    opening = f'You said: "{shown}". ' if shown else "You said nothing. "
    return (
        f"{opening}I am a scripted demo model, so my answer is always the same for the same question. "
        "Offer me a tool and I will call it; give me its result and I will quote it."
    )


def _say(found: re.Match[str]) -> str:
    return quotation(found.group(1) or found.group(2))


def _count(found: re.Match[str]) -> str:
    return ", ".join(str(at) for at in range(1, min(int(number(found.group(1))), _LONGEST) + 1))


def _write(found: re.Match[str]) -> str:
    length = min(int(number(found.group(1))), _LONGEST)
    return " ".join(islice(cycle(_FILL.split()), length)) + "."


def _greet(_: re.Match[str]) -> str:
    return "Hello! I am a scripted demo model. Ask me something, or offer me a tool and I will call it."


_SKILLS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"\b(?:say|repeat|echo|reply with)\b[^\"\n]{0,40}?(?:\"([^\"]+)\"|:\s*(.+))", re.I | re.S), _say),
    (re.compile(rf"\bcount\s+(?:from\s+\w+\s+)?to\s+{_NUMBER}\b", re.I), _count),
    (re.compile(rf"\b{_NUMBER}\s+words\b", re.I), _write),
    (re.compile(r"^(?:hi|hello|hey|good (?:morning|evening|day)|who are you)\b|^你好", re.I), _greet),
)


# The first lines of the edits that clients parse from a response: fenced files, SEARCH/REPLACE blocks, diffs, patches.
_EDIT: Final = re.compile(r"\s*(?:`{3}|~{3}|<{5,}|={5,}|>{5,}|diff |--- |\+\+\+ |@@|\*\*\* )")


def quotation(text: str) -> str:
    """Returns the text unchanged, or with every line marked as quoted if it holds a line of an edit."""
    lines = text.splitlines(keepends=True)
    return "".join(f"> {line}" for line in lines) if any(map(_EDIT.match, lines)) else text
