"""A phrase in, the values it names out: numbers, quoted text, names, paths, links, dates."""

import re
from typing import Final

import msgspec

from gateway.demo.words import vocabulary

_TEN: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_WORDS: Final = dict(zip(_TEN, range(1, 11), strict=True))
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w-]|\.\d)|\b(?:" + "|".join(_NUMBER_WORDS) + r")\b", re.I)
_QUOTED: Final = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)|「([^」\n]+)」")
_LINK: Final = re.compile(r"https?://[^\s\"'<>`]*[^\s\"'<>`.,;:!?)]")
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_DATE: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_PATH: Final = re.compile(r"(?<![\w/:])(?:[~.]{0,2}/[\w./-]*\w|[\w-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,7})\b")
_NAMES: Final = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:de\s+|of\s+|la\s+)?[A-Z][\w'’-]*)*")
_PLACE: Final = re.compile(r"\b(?:in|at|near|to|of|for|from)\s+([a-z][\w'’-]+)\b(?=\s*(?:[?.!,]|$|and\b))")
_EXPRESSION: Final = re.compile(r"[-(\d][-\d\s+*/().^%]*[-+*/^%][-\d\s+*/().^%]*[\d)]")
# Words that open a sentence with a capital letter without being anybody's name.
_OPENERS: Final = vocabulary(
    """
    what which who how when where why is are was do does did can could would should please show tell give get find look
    list read open run execute search call use check fetch add compute calculate multiply divide convert then first
    finally next after and or the a an i i'm i'd it in at on for to of if let let's say write count think explain
    compare describe send book create delete update make set turn translate summarize summarise need step also now help
    reply answer return ask
    """
)


class Findings(msgspec.Struct, frozen=True):
    """What a phrase names, each kind in the order of the text."""

    phrase: str
    numbers: tuple[float, ...]
    quoted: tuple[str, ...]
    names: tuple[str, ...]
    paths: tuple[str, ...]
    links: tuple[str, ...]
    emails: tuple[str, ...]
    dates: tuple[str, ...]
    expressions: tuple[str, ...]


def find_values(phrase: str) -> Findings:
    """Read a phrase once for everything an argument could be made of."""
    plain = _DATE.sub(" ", _EMAIL.sub(" ", _LINK.sub(" ", phrase)))
    return Findings(
        phrase=phrase.strip(),
        numbers=tuple(number(found) for found in _NUMBER.findall(plain)),
        quoted=tuple(next(filter(None, found)) for found in _QUOTED.findall(phrase)),
        names=_proper_names(plain) or tuple(_PLACE.findall(plain)),
        paths=tuple(_PATH.findall(plain)),
        links=tuple(_LINK.findall(phrase)),
        emails=tuple(_EMAIL.findall(phrase)),
        dates=tuple(_DATE.findall(phrase)),
        expressions=tuple(found.strip() for found in _EXPRESSION.findall(plain)),
    )


def number(word: str) -> float:
    """A number written in digits or as an English word up to ten."""
    return float(_NUMBER_WORDS.get(word.lower(), 0) or word)


def _proper_names(text: str) -> tuple[str, ...]:
    names = []
    for found in _NAMES.findall(text):
        parts = found.split()
        while parts and _possessed(parts[0]).lower() in _OPENERS:
            parts.pop(0)
        if parts:
            names.append(_possessed(" ".join(parts)))
    return tuple(names)


def _possessed(name: str) -> str:
    return name.removesuffix("'s").removesuffix("’s")
