"""Reads the filter of a list of requests: `model:gpt-* status:5xx -code:client_gone ms:>2000 "no such file"`.

Its words are searched in the contents of requests. A word that stands only in a secret is not found: else the secret
could be guessed, character by character.
"""

import fnmatch
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.core.secrets import without_secrets
from gateway.inspector.summary import Summary

Test: TypeAlias = Callable[[Summary], bool]

_TERM: Final = re.compile(r"(-?)([a-z]+):(\S+)")
# A word, or several in quotes; a quote that is never closed is one of the word.
_PART: Final = re.compile(r'-?"[^"]+"|\S+')
_NUMBER: Final = re.compile(r"([<>]?)(\d+)")
_STATUS: Final = re.compile(r"\d\d\d|[1-5]xx")
_SHOWN: Final = 100
# A longer one would be tried on ten thousand requests for seconds.
_MOST: Final = 2000


def _glob(read: Callable[[Summary], str]) -> Callable[[str], Test]:
    def build(pattern: str) -> Test:
        return lambda summary: fnmatch.fnmatchcase(read(summary).lower(), pattern.lower())

    return build


def _number(read: Callable[[Summary], float]) -> Callable[[str], Test]:
    def build(value: str) -> Test:
        match = _NUMBER.fullmatch(value)
        if match is None:
            raise ValueError("a number, which may follow < or >")
        limit = int(match[2])
        if match[1] == ">":
            return lambda summary: read(summary) > limit
        return (lambda summary: read(summary) < limit) if match[1] else (lambda summary: int(read(summary)) == limit)

    return build


def _flag(read: Callable[[Summary], bool]) -> Callable[[str], Test]:
    def build(value: str) -> Test:
        if value not in ("yes", "no"):
            raise ValueError("yes or no")
        return lambda summary: read(summary) == (value == "yes")

    return build


def _status(value: str) -> Test:
    if not _STATUS.fullmatch(value):
        raise ValueError("a status or a class like 5xx")
    return lambda summary: str(summary.status).startswith(value.rstrip("x"))


def _rule(pattern: str) -> Test:
    return lambda summary: any(fnmatch.fnmatchcase(rule, pattern.upper()) for rule in summary.rules)


def _cause(pattern: str) -> Test:
    return lambda summary: summary.cache is not None and fnmatch.fnmatchcase(summary.cache.cause, pattern.lower())


def _stage(stage: str) -> Test:
    return lambda summary: any(part.startswith(f"{stage}=") for part in summary.changes.split("; "))


FIELDS: Final[Mapping[str, Callable[[str], Test]]] = {
    "id": _glob(lambda summary: summary.id),
    "key": _glob(lambda summary: summary.key),
    "model": _glob(lambda summary: summary.model),
    "backend": _glob(lambda summary: summary.backend),
    "client": _glob(lambda summary: summary.client),
    "dialect": _glob(lambda summary: summary.dialect),
    "code": _glob(lambda summary: summary.code),
    "status": _status,
    "rule": _rule,
    "stage": _stage,
    "ms": _number(lambda summary: summary.ms),
    "first": _number(lambda summary: -1 if summary.first_ms is None else summary.first_ms),
    "tok": _number(lambda summary: (summary.prompt_tokens or 0) + (summary.completion_tokens or 0)),
    "stream": _flag(lambda summary: summary.stream),
    "changed": _flag(lambda summary: bool(summary.changes)),
    "failed": _flag(lambda summary: bool(summary.code)),
    "live": _flag(lambda summary: summary.live),
    "conv": _glob(lambda summary: summary.conversation),
    "cache": _cause,
    "session": _glob(lambda summary: "" if summary.session is None else summary.session.id),
    "agent": _glob(lambda summary: "" if summary.session is None else summary.session.agent),
}


class Word(msgspec.Struct, frozen=True):
    """A text that must stand in the contents of a request; `absent`: that must not."""

    text: str
    absent: bool = False


class Filter(msgspec.Struct, frozen=True):
    """The conditions of a request: by its summary, and by the words in its contents."""

    matches: Test
    words: tuple[Word, ...] = ()

    @property
    def found(self) -> tuple[str, ...]:
        """The words that stand in the contents of every request that passes."""
        return tuple(word.text for word in self.words if not word.absent)


def read_filter(text: str) -> Filter:
    """Returns a filter: every term must hold, a leading `-` turns one around, `*` stands for any text of a field. What
    names no field is a word, or several in quotes. An empty filter lets all pass. Raises InvalidRequest, which names
    the term, or says that it is too long."""
    if len(text) > _MOST:
        raise InvalidRequest(f"The filter has {len(text)} characters; the most is {_MOST}.", param="filter")
    parts = _PART.findall(text)
    tests = [_term(part) for part in parts if _names_field(part)]
    words = tuple(_word(part) for part in parts if not _names_field(part))
    return Filter(lambda summary: all(test(summary) for test in tests), words)


def _names_field(part: str) -> bool:
    return ":" in part and '"' not in part


def _word(part: str) -> Word:
    absent = part.startswith("-") and len(part) > 1
    text = part[absent:]
    return Word(text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text, absent)


def _term(term: str) -> Test:
    match = _TERM.fullmatch(term)
    if match is None or match[2] not in FIELDS:
        raise InvalidRequest(
            f"The filter {term[:_SHOWN]!r} is unknown. A term is FIELD:VALUE, or a word of the contents, in quotes "
            f"where it has a colon; the fields are {', '.join(FIELDS)}.",
            param="filter",
        )
    try:
        test = FIELDS[match[2]](match[3])
    except ValueError as error:
        raise InvalidRequest(f"The filter {term[:_SHOWN]!r} needs {error}.", param="filter") from error
    return (lambda summary: not test(summary)) if match[1] else test


def holds(texts: Sequence[bytes], words: Sequence[Word], secrets: Sequence[str]) -> bool:
    """Returns whether every word stands in one of the texts, in either case, and none that must be absent."""
    lowered = [text.lower() for text in texts]
    return all(_is_in(word.text, texts, lowered, secrets) != word.absent for word in words)


def _is_in(word: str, texts: Sequence[bytes], lowered: Sequence[bytes], secrets: Sequence[str]) -> bool:
    forms = [form.encode("utf-8", "replace").lower() for form in _forms(word)]
    found = [text for text, lower in zip(texts, lowered, strict=True) if any(form in lower for form in forms)]
    # Only where it stands is looked for secrets, which takes far longer.
    clean = (
        without_secrets(text.decode("utf-8", "replace"), secrets).encode("utf-8", "replace").lower() for text in found
    )
    return any(form in text for text in clean for form in forms)


def _forms(word: str) -> set[str]:
    """Returns a word as it may be written: as it is, or as JSON writes it."""
    return {word, json.dumps(word)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1], word.lower(), word.upper()}
