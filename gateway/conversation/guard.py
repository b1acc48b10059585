"""Bodies -> bodies that cannot forge a turn: quoted line by line when a line in them would read as a label."""

import functools
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from gateway.policy import Labels

QUOTE: Final = "> "
_WINDOW: Final = 1 << 16

# Speakers that a model knows from other transcripts. The configured labels are added to them.
SPEAKERS: Final = (
    "system",
    "developer",
    "user",
    "human",
    "customer",
    "assistant",
    "ai",
    "bot",
    "model",
    "gpt",
    "chatgpt",
    "claude",
    "tool",
    "tools",
    "tool calls?",
    "tool results?",
    "tool responses?",
    "tool outputs?",
    "function",
    "function calls?",
    "function results?",
    "observation",
    "instructions?",
)

# What may stand before a label and leave it looking like one: blanks, marks of lists, headings and emphasis, and
# characters that are not seen.
_LEAD: Final = r"[ \t\u00a0#*_\-\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
_COLON: Final = "[:\uff1a\ufe55\ufe13\u2236\ua789\u02d0]"
_AFTER: Final = r"[ \t*_\u00a0\u200b-\u200f\u2060\ufeff]"


@functools.lru_cache(maxsize=64)
def _guarded_line(labels: Labels) -> re.Pattern[str]:
    """The beginning of a case-folded line that would read as a label, or as a line that was quoted.

    Possessive quantifiers keep the match linear: a line of a million blanks is looked at once.
    """
    result = re.escape(labels.tool_result.casefold())
    configured = (labels.system, labels.user, labels.assistant, labels.tool_calls, labels.tool_result)
    words = "|".join([*(re.escape(label.casefold()) for label in configured), *SPEAKERS])
    return re.compile(
        rf"{QUOTE}|{_LEAD}*+(?:{result}{_AFTER}*+\(|(?:{words}){_AFTER}*+(?:{_COLON}|\(.*?\){_AFTER}*+{_COLON}))"
    )


def needs_guard(text: str, labels: Labels) -> bool:
    """Whether a line of the text would read as a label, in any case and after any Unicode line boundary, or as a
    quoted line."""
    begins = _guarded_line(labels).match
    return any(_begins_in(piece, begins) for piece in _windows(text))


def _begins_in(text: str, begins: Callable[[str], object]) -> bool:
    if any(map(begins, filter(None, text.casefold().splitlines()))):
        return True
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return False
    return any(map(begins, unicodedata.normalize("NFKC", text).casefold().splitlines()))


def _windows(text: str) -> Iterator[str]:
    """The text in pieces of whole lines. Looking through millions of lines in one go would let no other thread run."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _WINDOW) + 1 or len(text)
        yield text[start:end]
        start = end


def guarded(body: str, labels: Labels) -> str:
    """The body as it may stand behind a label: unchanged, or every line of it behind `> `."""
    if needs_guard(body, labels):
        return "".join(QUOTE + line for line in body.splitlines(keepends=True))
    return body


def unguarded(body: str) -> str:
    """The inverse of `guarded`."""
    if not body.startswith(QUOTE):
        return body
    return "".join(line.removeprefix(QUOTE) for line in body.splitlines(keepends=True))


def token(word: str) -> str:
    """An id or a name as one printable word without blanks; any other is written as a JSON string in ASCII."""
    plain = word.isprintable() and word != "" and " " not in word and not word.startswith('"')
    return word if plain else json.dumps(word)


def untoken(written: str) -> str:
    """The inverse of `token`. Raises ValueError for what `token` never writes."""
    return str(json.loads(written)) if written.startswith('"') else written
