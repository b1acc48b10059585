"""Quotes a body line by line when one of its lines would read as a label, so that no body can forge a turn."""

import functools
import itertools
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gateway.core.policy import Labels

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

# Characters that may precede a label without hiding it: blanks, list, heading and emphasis marks, and invisible
# characters.
_LEAD: Final = r"[ \t\u00a0#*_\-\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
_COLON: Final = "[:\uff1a\ufe55\ufe13\u2236\ua789\u02d0]"
_AFTER: Final = r"[ \t*_\u00a0\u200b-\u200f\u2060\ufeff]"


# The line boundaries of str.splitlines.
_LINE_END: Final = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

# Normalisation sorts a run of combining marks in time quadratic in its length, and expands one character to up to 18,
# so each slice of a line has at most this length.
_SLICE: Final = 128
# No text in normal use has more combining marks in a row (UAX #15, Stream-Safe Text Format: 30).
_LONGEST_RUN: Final = 32


class _Guard(msgspec.Struct, frozen=True):
    """The patterns of a case-folded line that reads as a label or as a quoted line.

    `begins` matches such a line; it is possessive, so that a line of a million blanks is scanned once. In a line that
    is longer than a slice, the first `head` characters decide unless `may_begin` matches them. The line is then read
    slice by slice: `opens` matches its beginning up to the colon or the bracket (group `bracket`), `closes` the end of
    that bracket (group `colon`) or a possible beginning of it. Both read runs of blanks that are longer than any in a
    label (`blanks`, and `lead` at the beginning) shortened, so that `enough` characters decide.
    """

    begins: re.Pattern[str]
    may_begin: re.Pattern[str]
    opens: re.Pattern[str]
    closes: re.Pattern[str]
    lead: re.Pattern[str]
    blanks: re.Pattern[str]
    head: int
    enough: int

    def reads_as_label(self, slices: Iterable[str]) -> bool:
        """Returns whether the line in these slices would match `begins`; reads only as much of it as decides."""
        slices = iter(slices)
        head = ""
        for piece in slices:
            head = self.blanks.sub(r"\1", self.lead.sub(r"\1", head + piece))
            if len(head) >= self.enough:
                break
        found = self.opens.match(head)
        if found is None or found["bracket"] is None:
            return found is not None
        held = ""
        for piece in itertools.chain((head[found.end() :],), slices):
            closed = self.closes.search(held + piece)
            if closed is not None and closed["colon"]:
                return True
            held = "" if closed is None else ")"
        return False


@functools.lru_cache(maxsize=64)
def _guard(labels: Labels) -> _Guard:
    result = re.escape(labels.tool_result.casefold())
    configured = (labels.system, labels.user, labels.assistant, labels.tool_calls, labels.tool_result, labels.summary)
    known = [*(re.escape(label.casefold()) for label in configured), *SPEAKERS]
    words = "|".join(known)
    longest = max(map(len, known))
    opened = rf"{result}{_AFTER}*+\(|(?:{words}){_AFTER}*+"
    return _Guard(
        begins=re.compile(rf"{QUOTE}|{_LEAD}*+(?:{opened}(?:{_COLON}|\(.*?\){_AFTER}*+{_COLON}))"),
        may_begin=re.compile(rf"{QUOTE}|{_LEAD}*+(?:{words})|{_LEAD}{{{_SLICE}}}"),
        opens=re.compile(rf"{QUOTE}|{_LEAD}*+(?:{opened}(?:{_COLON}|(?P<bracket>\()))"),
        closes=re.compile(rf"\){_AFTER}*+(?:(?P<colon>{_COLON})|\Z)"),
        lead=re.compile(rf"\A({_LEAD}){_LEAD}++"),
        blanks=re.compile(rf"({_AFTER}{{{longest}}}){_AFTER}++"),
        head=_SLICE + 4 * longest,
        enough=3 * longest,
    )


def needs_guard(text: str, labels: Labels) -> bool:
    """Returns whether a line of the text would read as a label or as a quoted line.

    The comparison covers any case and every Unicode line boundary.
    """
    # In ASCII there is one colon and one bracket, and no label is without both.
    if text.isascii() and ":" not in text and "(" not in text and QUOTE not in text:
        return False
    guard = _guard(labels)
    # One short line, as arguments mostly are.
    if len(text) <= _SLICE and text.isascii() and text.isprintable():
        return guard.begins.match(text.casefold()) is not None
    if len(text) <= _WINDOW:
        return _begins_in(text.splitlines(), guard)
    return any(_begins_in(piece.splitlines(), guard) for piece in _windows(text))


def _begins_in(lines: list[str], guard: _Guard) -> bool:
    begins, may_begin = guard.begins.match, guard.may_begin.match
    short = [line for line in lines if len(line) <= _SLICE]
    if any(any(map(begins, filter(None, reading))) for reading in _readings(short)):
        return True
    if len(short) == len(lines):
        return False
    long = [line for line in lines if len(line) > _SLICE]
    heads = zip(*_readings([line[: guard.head] for line in long]), strict=True)
    return any(any(map(may_begin, head)) and _begins(line, guard) for line, head in zip(long, heads, strict=True))


def _readings(lines: list[str]) -> Iterator[list[str]]:
    """Yields the lines in lower case and, if they hold compatibility characters, once more in normalised form."""
    text = "\n".join(lines)
    yield text.casefold().splitlines()
    if not (text.isascii() or unicodedata.is_normalized("NFKC", text)):
        yield unicodedata.normalize("NFKC", text).casefold().splitlines()


def _begins(line: str, guard: _Guard) -> bool:
    """Returns whether one long line reads as a label or as a quoted line."""
    plain = (line[at : at + _SLICE].casefold() for at in range(0, len(line), _SLICE))
    if guard.reads_as_label(plain):
        return True
    return not line.isascii() and guard.reads_as_label(_normalized(line))


def _normalized(line: str) -> Iterator[str]:
    """Yields the normalised line in slices."""
    start = 0
    while start < len(line):
        cuts = range(start + _SLICE, start + _SLICE + _LONGEST_RUN)
        end = next((at for at in cuts if _is_boundary(line, at)), start + _SLICE)
        yield unicodedata.normalize("NFKC", line[start:end]).casefold()
        start = end


def _is_boundary(line: str, at: int) -> bool:
    """Returns whether normalisation changes nothing across a cut before `line[at]` (UAX #15, Stable Code Points)."""
    after = line[at : at + 1]
    if after.isascii():
        return True
    if unicodedata.combining(unicodedata.normalize("NFKD", after)[0]):
        return False
    before = unicodedata.normalize("NFKC", line[max(at - 4, 0) : at])
    return unicodedata.normalize("NFKC", before + after) == before + unicodedata.normalize("NFKC", after)


def _windows(text: str) -> Iterator[str]:
    """Yields the text in pieces of whole lines.

    A single scan of millions of lines would block every other thread, and hold every line in memory.
    """
    start = 0
    while start < len(text):
        end = _line_end(text, start + _WINDOW)
        yield text[start:end]
        start = end


def _line_end(text: str, at: int) -> int:
    for start in range(at, len(text), _WINDOW):
        found = _LINE_END.search(text, start, start + _WINDOW)
        if found is not None:
            # A line feed after a carriage return belongs to it; after any other character it ends an empty line.
            return found.end() + text.startswith("\n", found.end())
    return len(text)


def guarded(body: str, labels: Labels) -> str:
    """Returns the body as it may stand behind a label: unchanged, or with `> ` before every line."""
    if not needs_guard(body, labels):
        return body
    return "".join("".join([QUOTE + line for line in piece.splitlines(keepends=True)]) for piece in _windows(body))


def token(word: str) -> str:
    """Returns an id or a name as one printable word without blanks; encodes any other as a JSON string in ASCII."""
    plain = word.isprintable() and word != "" and " " not in word and not word.startswith('"')
    return word if plain else json.dumps(word)
