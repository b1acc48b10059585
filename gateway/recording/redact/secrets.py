"""Finds secrets in text, and replaces them by placeholders of the same length.

A placeholder names the kind of the secret and its length: `[key:openai:51]`, filled up with `*`. Equal length keeps
every frame of a wire whole. A shorter secret becomes `*` alone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Final, NamedTuple

from gateway.recording.redact.json_escapes import decoded, written


class _Shape(NamedTuple):
    """What a secret of some kind looks like: the lower-case `mark` by which it is found, and how many characters behind
    the beginning of that mark the pattern must match. If the pattern has groups, the secret is the one that matches."""

    kind: str
    mark: str
    pattern: re.Pattern[str]
    offset: int = 0


def _word(kind: str, mark: str, pattern: str, before: str = "[A-Za-z0-9]") -> _Shape:
    """Returns the shape of a word that nothing of `before` precedes. The letter of an escaped line end may: a file as
    an argument of a call is JSON text in JSON text, where it stands before the first word of each line."""
    edge = rf"(?:(?<!{before})|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{{4}}))"
    return _Shape(kind, mark, re.compile(edge + pattern))


def _shapes(kind: str, marks: str, pattern: str, offset: int | None = 0) -> Iterator[_Shape]:
    """Yields the shape for each mark. Offset None: it begins behind the mark."""
    compiled = re.compile(pattern)
    for mark in marks.split("|"):
        yield _Shape(kind, mark, compiled, len(mark) if offset is None else offset)


# Of several that begin at one place the first wins.
_SHAPES: Final = (
    *_shapes(
        "pem",
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----BEGIN)[\s\S])*?(?:-----END[A-Z0-9 ]*+-----|\Z)",
    ),
    _word("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]*+)?", "[A-Za-z0-9_-]"),
    *_shapes("anthropic", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{8,}+"),
    *_shapes("openrouter", "sk-or-", r"sk-or-[A-Za-z0-9_-]{8,}+"),
    *_shapes("stripe", "_live_|_test_", r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}+", -2),
    _word("openai", "sk-", r"sk-[A-Za-z0-9_-]{8,}+"),
    *_shapes("google", "aiza", r"AIza[A-Za-z0-9_-]{20,}+"),
    _word("google", "ya29.", r"ya29\.[A-Za-z0-9_-]{12,}+"),
    *(_word("github", mark, r"gh[pousr]_[A-Za-z0-9]{16,}+") for mark in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    _word("github", "github_pat_", r"github_pat_[A-Za-z0-9_]{16,}+"),
    *_shapes("gitlab", "glpat-", r"glpat-[A-Za-z0-9_-]{12,}+"),
    *_shapes("slack", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{8,}+"),
    *_shapes("aws", "akia|asia|aroa|aida", r"(?<![A-Z0-9])(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}+"),
    _word("huggingface", "hf_", r"hf_[A-Za-z0-9]{16,}+"),
    _word("groq", "gsk_", r"gsk_[A-Za-z0-9]{16,}+"),
    _word("replicate", "r8_", r"r8_[A-Za-z0-9]{16,}+"),
    _word("xai", "xai-", r"xai-[A-Za-z0-9]{16,}+"),
    _word("nvidia", "nvapi-", r"nvapi-[A-Za-z0-9_-]{16,}+"),
    _word("perplexity", "pplx-", r"pplx-[A-Za-z0-9]{16,}+"),
    _word("sendgrid", "sg.", r"SG\.[A-Za-z0-9_-]{12,}+\.[A-Za-z0-9_-]{12,}+"),
    _word("npm", "npm_", r"npm_[A-Za-z0-9]{16,}+"),
    *_shapes("pypi", "pypi-", r"pypi-[A-Za-z0-9_-]{16,}+"),
    *_shapes("url", "://", r"[^\s/@:\"'<>\[\]]*+:[^\s/@\"'<>]++(?=@)", None),
    *_shapes("cookie", "cookie: ", r"[^\s=;,\"']++=[^\s;\"']{8,}+(?:; ?[^\s=;,\"']++=[^\s;\"']++)*+", None),
    *_shapes("bearer", "bearer |basic |token ", r"[A-Za-z0-9+/_.~-]{16,}+={0,2}+", None),
)
# The value of a name in text, in quotes or up to the next space. Quotes may be escaped.
_NAMED: Final = tuple(
    _shapes(
        "value",
        "api|secret|access|auth|refresh|pass",
        r"(?i:api[_-]?key|secret[_-]?key|access[_-]?key|access[_-]?token|auth[_-]?token"
        r"|refresh[_-]?token|password|passwd|passphrase|(?<=_)pass|secret)"
        r"(?:\\*+[\"'])?+\s*+[=:]\s*+"
        r"(?:\\*+[\"'](?=[^\"'*\[][^\"']{5})((?:[^\"'\\]++|\\++(?![\"']))++)(?=\\*+[\"'])|([^\s\"'&,;<>\[\]*\\][^\s\"'&,;<>\[\]*]{5,}+))",
    )
)
_MARKS: Final = tuple(dict.fromkeys(shape.mark for shape in (*_SHAPES, *_NAMED)))
# The values of fields with these names are secrets, whatever their shape.
_FIELD: Final = re.compile(
    r"(?i)(?:.*[_-])?(?:api[_-]?key|apikey|password|passwd|secret|authorization|cookie|set-cookie|client[_-]?secret"
    r"|access[_-]?token|refresh[_-]?token|auth[_-]?token|private[_-]?key|session[_-]?token)"
)
# A character of a key that is written as an escape, as any JSON may.
_ESCAPED: Final = re.compile(r"\\u00[2-7][0-9A-Fa-f]")
# A shorter value is a word, and a part of many others.
SHORTEST: Final = 6


def is_secret_field(name: str) -> bool:
    """Returns whether a field of this name holds a secret."""
    return _FIELD.fullmatch(name) is not None


def without_secrets(text: str, configured: Iterable[str] = ()) -> str:
    """Returns the text, of the same length, without secrets: the configured ones, and everything of a known shape. Line
    ends stay. What it returns has no secret."""
    for value in configured:
        if len(value) >= SHORTEST and value in text:
            text = text.replace(value, placeholder("configured", value))
    if len(text) < SHORTEST:
        return text
    if _ESCAPED.search(text):
        text = _without_escaped(text, [*configured])
    folded = _folded(text)
    if not any(map(folded.__contains__, _MARKS)):
        return text
    clean = _without(text, folded, _SHAPES)
    return _without(clean, folded if clean == text else _folded(clean), _NAMED)


def _without_escaped(text: str, configured: Sequence[str]) -> str:
    """Returns a text without the secrets that are there in what its escapes mean: it may be JSON, or hold some."""
    meant = decoded(text)
    clean = without_secrets(meant, configured)
    return text if clean == meant else written(text, clean)


def placeholder(kind: str, secret: str) -> str:
    """Returns what stands for a secret. Control characters in it stay."""
    name = f"[key:{kind}:{len(secret)}]"
    filled = name.ljust(len(secret), "*") if len(secret) >= len(name) else "*" * len(secret)
    if secret.isprintable():
        return filled
    return "".join(new if old.isprintable() else old for old, new in zip(secret, filled, strict=True))


def _without(text: str, folded: str, shapes: Sequence[_Shape]) -> str:
    there = [shape for shape in shapes if shape.mark in folded]
    parts: list[str] = []
    end = 0
    for start, stop, kind in _found(text, folded, there):
        parts += (text[end:start], placeholder(kind, text[start:stop]))
        end = stop
    return "".join([*parts, text[end:]]) if parts else text


def _folded(text: str) -> str:
    """Returns a text of the same length in which letters that differ in case are the same."""
    folded = text.casefold()
    return folded if len(folded) == len(text) else "".join(char.casefold()[:1] for char in text)


def _found(text: str, folded: str, shapes: Sequence[_Shape]) -> Iterator[tuple[int, int, str]]:
    """Yields the secrets from left to right."""
    end = 0
    for start, number in merge(*(_places(folded, shape, number) for number, shape in enumerate(shapes))):
        if start >= end and (match := shapes[number].pattern.match(text, start)):
            begin, end = match.span(match.lastindex or 0)
            yield begin, end, shapes[number].kind


def _places(folded: str, shape: _Shape, number: int) -> Iterator[tuple[int, int]]:
    """Yields where a secret of this shape may begin."""
    at = folded.find(shape.mark)
    while at >= 0:
        if at + shape.offset >= 0:
            yield at + shape.offset, number
        at = folded.find(shape.mark, at + 1)
