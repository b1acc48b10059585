"""Bodies -> bodies that cannot forge a turn: quoted line by line when a line in them would read as a label."""

import functools
import json
import re
import unicodedata
from typing import Final

from gateway.policy import Labels

# What str.splitlines, and so somebody, takes for the end of a line.
BOUNDARIES: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
QUOTE: Final = "> "

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
def _label_line(labels: Labels) -> re.Pattern[str]:
    """A line that would read as a label.

    Possessive quantifiers keep the search linear: a line of a million blanks is looked at once.
    """
    configured = (labels.system, labels.user, labels.assistant, labels.tool_calls, labels.tool_result)
    words = "|".join([*map(re.escape, configured), *SPEAKERS])
    inside = f"[^{BOUNDARIES}]"
    return re.compile(
        rf"(?:\A|[{BOUNDARIES}]){_LEAD}*+"
        rf"(?:{re.escape(labels.tool_result)}{_AFTER}*+\(|(?:{words}){_AFTER}*+(?:{_COLON}|\({inside}*?\){_AFTER}*+{_COLON}))",
        re.IGNORECASE,
    )


_QUOTED_LINE: Final = re.compile(rf"(?:\A|[{BOUNDARIES}])> ")


def reads_as_label(text: str, labels: Labels) -> bool:
    """Whether a line of the text would read as a label, in any case and after any Unicode line boundary."""
    pattern = _label_line(labels)
    if pattern.search(text):
        return True
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return False
    return pattern.search(unicodedata.normalize("NFKC", text)) is not None


def guarded(body: str, labels: Labels) -> str:
    """The body as it may stand behind a label: unchanged, or every line of it behind `> `."""
    if _QUOTED_LINE.search(body) or reads_as_label(body, labels):
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
