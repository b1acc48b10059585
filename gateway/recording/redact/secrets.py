"""Finds secrets in text, and replaces them by placeholders of the same length.

A placeholder names the kind of the secret and its length: `[key:openai:51]`, filled up with `*`. Equal length keeps
every frame of a wire whole. A shorter secret becomes `*` alone.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final


def _word(begin: str, rest: str, before: str = "[A-Za-z0-9]") -> str:
    """Returns the shape of a word that nothing of `before` precedes; `begin` has a fixed length, and is sought first,
    which is faster. The letter of an escaped line end may precede: a file as an argument of a call is JSON text in JSON
    text, where it stands before the first word of each line."""
    return rf"{begin}(?:(?<!{before}{begin})|(?<=\\[bfnrt]{begin})|(?<=\\u[0-9A-Fa-f]{{4}}{begin})){rest}"


# The kind of each secret by its shape. The first that matches wins.
_SHAPES: Final = (
    (
        "pem",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----BEGIN)[\s\S])*?(?:-----END[A-Z0-9 ]*-----|\Z)",
    ),
    ("jwt", _word("eyJ", r"[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?", "[A-Za-z0-9_-]")),
    ("anthropic", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    ("openrouter", r"sk-or-[A-Za-z0-9_-]{8,}"),
    ("stripe", r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}"),
    ("openai", _word("sk-", r"[A-Za-z0-9_-]{8,}")),
    ("google", r"AIza[A-Za-z0-9_-]{20,}"),
    ("google", _word(r"ya29\.", r"[A-Za-z0-9_-]{12,}")),
    ("github", _word("gh[pousr]_", r"[A-Za-z0-9]{16,}")),
    ("github", _word("github_pat_", r"[A-Za-z0-9_]{16,}")),
    ("gitlab", r"glpat-[A-Za-z0-9_-]{12,}"),
    ("slack", r"xox[abeoprs]-[A-Za-z0-9-]{8,}"),
    ("aws", r"(?<![A-Z0-9])(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}"),
    ("huggingface", _word("hf_", r"[A-Za-z0-9]{16,}")),
    ("groq", _word("gsk_", r"[A-Za-z0-9]{16,}")),
    ("replicate", _word("r8_", r"[A-Za-z0-9]{16,}")),
    ("xai", _word("xai-", r"[A-Za-z0-9]{16,}")),
    ("nvidia", _word("nvapi-", r"[A-Za-z0-9_-]{16,}")),
    ("perplexity", _word("pplx-", r"[A-Za-z0-9]{16,}")),
    ("sendgrid", _word(r"SG\.", r"[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}")),
    ("npm", _word("npm_", r"[A-Za-z0-9]{16,}")),
    ("pypi", r"pypi-[A-Za-z0-9_-]{16,}"),
    ("url", r"(?<=://)[^\s/@:\"'<>\[\]]*:[^\s/@\"'<>]+(?=@)"),
    ("bearer", r"(?i:(?<=bearer )|(?<=basic )|(?<=token ))[A-Za-z0-9+/_.~-]{16,}={0,2}"),
)
# Every shape has one of these in it, which is found far sooner than the shape.
_MARKS: Final = (
    *("private key", "eyj", "sk-", "_live_", "_test_", "aiza", "ya29.", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("github_pat_", "glpat-", "xox", "akia", "asia", "aroa", "aida", "hf_", "gsk_", "r8_", "xai-", "nvapi-", "pplx-"),
    *("sg.", "npm_", "pypi-", "://", "bearer ", "basic ", "token "),
)
_ANY: Final = re.compile("|".join(f"(?P<s{number}>{shape})" for number, (_, shape) in enumerate(_SHAPES)))
# The value of a name in text, in quotes or up to the next space. Quotes may be escaped.
_NAMED: Final = re.compile(
    r"(?i:api[_-]?key|apikey|secret[_-]?key|client[_-]?secret|access[_-]?key|access[_-]?token|auth[_-]?token"
    r"|refresh[_-]?token|password|passwd|secret)"
    r"(?:\\*[\"'])?\s*[=:]\s*"
    r"(?:\\*[\"'](?P<quoted>[^\"'*\[][^\"']{5,}?)(?=\\*[\"'])|(?P<bare>[^\s\"'&,;<>\[\]*\\][^\s\"'&,;<>\[\]*]{5,}))"
)
_NAMED_MARKS: Final = ("key", "secret", "token", "passw")
# The values of fields with these names are secrets, whatever their shape.
_FIELD: Final = re.compile(
    r"(?i)(?:.*[_-])?(?:api[_-]?key|apikey|password|passwd|secret|authorization|cookie|set-cookie|client[_-]?secret"
    r"|access[_-]?token|refresh[_-]?token|auth[_-]?token|private[_-]?key|session[_-]?token)"
)
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
    folded = text.casefold()
    if any(mark in folded for mark in _MARKS):
        text = _without(text, _shaped(text))
    return _without(text, _named(text)) if any(mark in folded for mark in _NAMED_MARKS) else text


def placeholder(kind: str, secret: str) -> str:
    """Returns what stands for a secret. Control characters in it stay."""
    name = f"[key:{kind}:{len(secret)}]"
    filled = name.ljust(len(secret), "*") if len(secret) >= len(name) else "*" * len(secret)
    if secret.isprintable():
        return filled
    return "".join(new if old.isprintable() else old for old, new in zip(secret, filled, strict=True))


def _without(text: str, found: Iterable[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop, kind in found:
        parts += (text[end:start], placeholder(kind, text[start:stop]))
        end = stop
    return "".join([*parts, text[end:]]) if parts else text


def _shaped(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _ANY.finditer(text):
        yield *match.span(), _SHAPES[int(str(match.lastgroup)[1:])][0]


def _named(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _NAMED.finditer(text):
        yield *match.span(str(match.lastgroup)), "value"
