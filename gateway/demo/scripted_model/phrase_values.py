"""Finds the values in a phrase: numbers, quoted text, names, paths, links, dates."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.demo.scripted_model.words import vocabulary

_TEN: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_WORDS: Final = dict(zip(_TEN, range(1, 11), strict=True))
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w-]|\.\d)|\b(?:" + "|".join(_NUMBER_WORDS) + r")\b", re.I)
_QUOTED: Final = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)|「([^」\n]+)」")
_LINK: Final = re.compile(r"https?://[^\s\"'<>`]*[^\s\"'<>`.,;:!?)]")
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_DATE: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_PATH: Final = re.compile(r"(?<![\w/:])(?:[~.]{0,2}/[\w./-]*\w|[\w-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,7})\b")
_NAMES: Final = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:de\s+|of\s+|la\s+)?[A-Z][\w'’-]*)*")
_SHORT: Final = 8
_BEFORE_PLACE: Final = re.compile(r"\b(?:in|at|near|to|of|for|from)\s+\Z", re.I)
_PLACE: Final = re.compile(r"\b(?:in|at|near|to|of|for|from)\s+([a-z][\w'’-]+)\b(?=\s*(?:[?.!,]|$|and\b))")
_EXPRESSION: Final = re.compile(r"[-(\d][-\d\s+*/().^%]*[-+*/^%][-\d\s+*/().^%]*[\d)]")
# The words before quoted text that must be run, and the words before quoted text that is only mentioned or must not be
# run.
_RUN: Final = re.compile(r"\b(?:run|execute|exec|start|do|try)\b|:\s*\Z", re.I)
_SPOKEN_OF: Final = re.compile(
    r"\b(?:not|never|without|what|why|how|when|if|would|should|explain|describe|mean|means)\b|n['’]t\b", re.I
)
_CLAUSE: Final = re.compile(r"[`\"“”「」\n.!?;]")
# Capitalised words at the start of a sentence that are not names.
_OPENERS: Final = vocabulary(
    """
    what which who how when where why is are was do does did can could would should please show tell give get find look
    list read open run execute search call use check fetch add compute calculate multiply divide convert then first
    finally next after and or the a an i i'm i'd it in at on for to of if let let's say write count think explain
    compare describe send book create delete update make set turn translate summarize summarise need step also now help
    reply answer return ask hi hello hey thanks ok okay yes no today tomorrow tonight yesterday current currently
    """
)


class Findings(msgspec.Struct, frozen=True):
    """The values in a phrase, each kind in the order of the text."""

    phrase: str
    numbers: tuple[float, ...]
    quoted: tuple[str, ...]
    names: tuple[str, ...]
    places: tuple[str, ...]
    paths: tuple[str, ...]
    links: tuple[str, ...]
    emails: tuple[str, ...]
    dates: tuple[str, ...]
    expressions: tuple[str, ...]
    commands: tuple[str, ...]


def find_values(phrase: str, verbs: frozenset[str] = frozenset()) -> Findings:
    """Finds every possible argument value in a phrase, in one pass; `verbs`, in lower case, are not names."""
    plain = _DATE.sub(" ", _EMAIL.sub(" ", _LINK.sub(" ", phrase)))
    names = _proper_names(plain, verbs)
    return Findings(
        phrase=phrase.strip(),
        numbers=tuple(number(found) for found in _NUMBER.findall(plain)),
        quoted=tuple(next(filter(None, found)) for found in _QUOTED.findall(phrase)),
        commands=tuple(_commands(phrase)),
        names=tuple(name for name, _ in names) or tuple(_PLACE.findall(plain)),
        places=tuple(name for name, placed in names if placed),
        paths=tuple(_PATH.findall(plain)),
        links=tuple(_LINK.findall(phrase)),
        emails=tuple(_EMAIL.findall(phrase)),
        dates=tuple(_DATE.findall(phrase)),
        expressions=tuple(found.strip() for found in _EXPRESSION.findall(plain)),
    )


def number(word: str) -> float:
    """Parses a number written in digits or as an English word up to ten."""
    return float(_NUMBER_WORDS.get(word.lower(), 0) or word)


def _commands(phrase: str) -> Iterator[str]:
    """Yields the quoted texts that the phrase asks to run; a phrase that is only quoted text asks to run it."""
    ended = 0
    for found in _QUOTED.finditer(phrase):
        before = _CLAUSE.split(phrase[ended : found.start()])[-1]
        if found.group() == phrase.strip() or (_RUN.search(before) and not _SPOKEN_OF.search(before)):
            yield next(filter(None, found.groups()))
        ended = found.end()


def _proper_names(text: str, verbs: frozenset[str]) -> list[tuple[str, bool]]:
    """Returns the names, each with a flag: whether it stands in the position of a place name."""
    names = []
    for found in _NAMES.finditer(text):
        parts = found.group().split()
        while parts and _possessed(parts[0]).lower() in _OPENERS | verbs:
            parts.pop(0)
        while parts and _possessed(parts[-1]).lower() in verbs:
            parts.pop()
        if parts:
            placed = _BEFORE_PLACE.search(text[max(0, found.start() - _SHORT) : found.start()]) is not None
            names.append((_possessed(" ".join(parts)), placed))
    return names


def _possessed(name: str) -> str:
    return name.removesuffix("'s").removesuffix("’s")
