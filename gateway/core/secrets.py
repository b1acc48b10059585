"""Finds secrets in text, and replaces them by placeholders of the same length.

A placeholder names the kind of the secret and its length: `[key:openai:51]`, filled up with `*`. Equal length keeps
every frame of a wire whole. A shorter secret becomes `*` alone.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from heapq import merge
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, quote_plus

from gateway.core.escapes import JSON_OR_PERCENT

# Where a secret begins and ends, and its kind.
_Secret: TypeAlias = tuple[int, int, str]


class _Shape(NamedTuple):
    """What a secret of some kind looks like: the lower-case `mark` by which it is found, and how many characters behind
    the beginning of that mark the pattern must match. If the pattern has groups, the secret is the one that matches."""

    kind: str
    mark: str
    pattern: str
    offset: int = 0


def _word(kind: str, mark: str, pattern: str, before: str = "[A-Za-z0-9]") -> _Shape:
    """Returns the shape of a word that nothing of `before` precedes. The letter of an escaped line end may: a file as
    an argument of a call is JSON text in JSON text, where it stands before the first word of each line."""
    edge = rf"(?:(?<!{before})|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{{4}}))"
    return _Shape(kind, mark, edge + pattern)


def _shapes(kind: str, marks: str, pattern: str, offset: int | None = 0) -> Iterator[_Shape]:
    """Yields the shape for each mark. Offset None: it begins behind the mark."""
    for mark in marks.split("|"):
        yield _Shape(kind, mark, pattern, len(mark) if offset is None else offset)


# Most shapes are never met, and compiling all of them would take longer than a command.
_compiled: Final = cache(re.compile)

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
    # A provider that quotes a wrong key masks the middle of it.
    _word("openai", "sk-", r"sk-[A-Za-z0-9_*-]{8,}+"),
    *_shapes("google", "aiza", r"AIza[A-Za-z0-9_-]{20,}+"),
    _word("google", "ya29.", r"ya29\.[A-Za-z0-9_-]{12,}+"),
    *(_word("github", mark, r"gh[pousr]_[A-Za-z0-9]{16,}+") for mark in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    _word("github", "github_pat_", r"github_pat_[A-Za-z0-9_]{16,}+"),
    *_shapes("gitlab", "glpat-|glrt-", r"gl(?:pat|rt)-[A-Za-z0-9_-]{12,}+"),
    *_shapes("slack", "xox|xapp-", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{8,}+"),
    *_shapes("slack", "hooks.slack.com/services/", r"[A-Za-z0-9/]{16,}+", None),
    *_shapes("aws", "akia|asia|aroa|aida", r"(?<![A-Z0-9])(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}+"),
    _word("huggingface", "hf_", r"hf_[A-Za-z0-9]{16,}+"),
    _word("groq", "gsk_", r"gsk_[A-Za-z0-9]{16,}+"),
    _word("replicate", "r8_", r"r8_[A-Za-z0-9]{16,}+"),
    _word("xai", "xai-", r"xai-[A-Za-z0-9]{16,}+"),
    _word("nvidia", "nvapi-", r"nvapi-[A-Za-z0-9_-]{16,}+"),
    _word("perplexity", "pplx-", r"pplx-[A-Za-z0-9]{16,}+"),
    _word("warp", "wk-", r"wk-[A-Za-z0-9_-]{12,}+"),
    # An API key, and an IAM token with its signature.
    _word("yandex", "aqvn", r"AQVN[A-Za-z0-9_-]{16,}+"),
    _word("yandex", "t1.", r"t1\.[A-Za-z0-9_-]{16,}+={0,2}+\.[A-Za-z0-9_-]{43,}+={0,2}+"),
    _word("cerebras", "csk-", r"csk-[A-Za-z0-9]{16,}+"),
    _word("together", "tgp_v1_", r"tgp_v1_[A-Za-z0-9_-]{16,}+"),
    _word("fireworks", "fw_", r"fw_[A-Za-z0-9]{20,}+"),
    _word("tavily", "tvly-", r"tvly-[A-Za-z0-9_-]{16,}+"),
    _word("langsmith", "lsv2_", r"lsv2_[a-z]{2}_[A-Za-z0-9_]{16,}+"),
    _word("vault", "hvs.", r"hvs\.[A-Za-z0-9_-]{16,}+"),
    _word("docker", "dckr_", r"dckr_[a-z]{3}_[A-Za-z0-9_-]{16,}+"),
    _word("sendgrid", "sg.", r"SG\.[A-Za-z0-9_-]{12,}+\.[A-Za-z0-9_-]{12,}+"),
    _word("npm", "npm_", r"npm_[A-Za-z0-9]{16,}+"),
    *_shapes("pypi", "pypi-", r"pypi-[A-Za-z0-9_-]{16,}+"),
    *_shapes("url", "://", r"(?:[^\s/@:\"'<>\[\]]*+:[^\s/@\"'<>]++|[A-Za-z0-9_-]{20,}+)(?=@)", None),
    *_shapes("user", " -u |--user ", r"[\"']?+[^\s:\"']++:([^\s\"'\\]{6,}+)", None),
    *_shapes(
        "parameter",
        "?key=|&key=|?token=|&token=|?sig=|&sig=|;accountkey=",
        r"[A-Za-z0-9+/_.~-]{16,}+(?:%[0-9A-Fa-f]{2}|=)*+",
        None,
    ),
    # One of AWS, in a header or a query: whoever has it may send the request again while it is valid.
    *_shapes("parameter", "signature=", r"[0-9A-Fa-f]{40,}+", None),
    *_shapes("cookie", "cookie: ", r"[^\s=;,\"']++=[^\s;\"']{8,}+(?:; ?[^\s=;,\"']++=[^\s;\"']++)*+", None),
    *_shapes("bearer", "bearer ", r"(?!(?i:auth|token|cred|scheme))[A-Za-z0-9+/_.~-]{8,}+={0,2}+", None),
    *_shapes("bearer", "basic |token ", r"[A-Za-z0-9+/_.~-]{16,}+={0,2}+", None),
)
# Between the name and its value in text; quotes may be escaped.
_IS: Final = r"(?:\\*+[\"'])?+\s*+[=:]\s*+"
# The value of a name in text, in quotes or up to the next space.
_NAMED: Final = (
    *_shapes(
        "value",
        "api|secret|access|auth|refresh|pass",
        r"(?i:api[_-]?key|secret[_-]?key|access[_-]?key|access[_-]?token|auth[_-]?token"
        r"|refresh[_-]?token|password|passwd|passphrase|(?<=_)pass|secret)"
        rf"{_IS}"
        r"(?:\\*+[\"'](?=[^\"'*\[][^\"']{5})((?:[^\"'\\]++|\\++(?![\"']))++)(?=\\*+[\"']|\Z)|([^\s\"'&,;<>\[\]*\\][^\s\"'&,;<>\[\]*]{5,}+))",
    ),
    *_shapes(
        "value",
        "authorization",
        rf"(?i:authorization{_IS}(?:\\*+[\"'])?+(?:(?:basic|bearer|digest|token)\s++([a-z0-9+/_.~-]{{8,}}+={{0,2}}+)"
        r"|(?=[a-z+/_.~-]*+[0-9])([a-z0-9+/_.~-]{12,}+={0,2}+)))",
    ),
    # Without a digit it is a word about tokens.
    *_shapes(
        "value",
        "token",
        rf"(?i:token{_IS}(?:\\*+[\"'])?+(?=[a-z+/_.~-]*+[0-9])([a-z0-9+/_.~-]{{16,}}+={{0,2}}+))",
    ),
)
_MARKS: Final = tuple(dict.fromkeys(shape.mark for shape in (*_SHAPES, *_NAMED)))
# The values of fields with these names are secrets, whatever their shape.
_FIELD: Final = re.compile(
    r"(?i)(?:.*[_-])?(?:api[_-]?key|apikey|password|passwd|secret|authorization|cookie|set-cookie|client[_-]?secret"
    r"|access[_-]?token|refresh[_-]?token|auth[_-]?token|private[_-]?key|session[_-]?token)"
)
# A character of a key that is written as an escape, as any JSON and any URL may.
_ESCAPED: Final = (("\\u00", re.compile(r"\\u00[2-7][0-9A-Fa-f]")), ("%", re.compile("%[2-7][0-9A-Fa-f]")))
_SHORTEST_ENCODED: Final = 24
_BASE64: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{_SHORTEST_ENCODED},}}+={{0,2}}+")
# Images in base64 are large, and no text: PNG, JPEG, GIF, WebP.
_IMAGES: Final = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
_ASCII: Final = bytes(range(0x80)) + bytes(0x80)
_STANDARD: Final = str.maketrans("-_", "+/")
# So often a text may be written in another one, with escapes or in base64.
_DEEPEST: Final = 5
# Matches a placeholder that names what it stands for.
PLACEHOLDER: Final = r"\[key:[a-z]+:\d+\]\**"
_PLACEHOLDER: Final = re.compile(PLACEHOLDER)
# A shorter value is a word, and a part of many others.
SHORTEST: Final = 6


_PRINTABLE: Final = bytes(range(0x20, 0x7F)).decode()
_PERCENT_BYTE: Final = re.compile("%[0-9A-F]{2}")


class _Configured(NamedTuple):
    """What is looked for of configured secrets: their forms in text, the bytes of those that are no ASCII, and whether
    JSON writes one with escapes."""

    forms: tuple[str, ...]
    data: tuple[bytes, ...]
    escaped: bool


def is_secret_field(name: str) -> bool:
    """Returns whether a field of this name holds a secret."""
    return _FIELD.fullmatch(name) is not None


def without_secrets(text: str, configured: Iterable[str] = ()) -> str:
    """Returns the text, of the same length, without secrets: the configured ones, and everything of a known shape, as
    it stands, escaped or in base64. Line ends stay. What it returns has no secret."""
    return _without_secrets(text, _looked_for(tuple(configured)), _DEEPEST)


def redact_keys(text: str) -> str:
    """Returns a text for people with `[redacted]` in place of each secret of a known shape."""
    return _PLACEHOLDER.sub("[redacted]", without_secrets(text))


@lru_cache(maxsize=1024)
def written_forms(secret: str) -> tuple[str, ...]:
    """Returns a secret as it stands, and as JSON (RFC 8259, section 7), a URL (RFC 3986, section 2.1, in UTF-8) and
    base64 (RFC 4648, sections 4 and 5, with padding and without) write it."""
    data = secret.encode("utf-8", "surrogatepass")
    in_url = [*(quote(data, safe) for safe in ("", "/", _PRINTABLE)), quote_plus(data)]
    in_base64 = [encode(data).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode)]
    forms = (
        secret,
        *(json.dumps(secret, ensure_ascii=only_ascii)[1:-1] for only_ascii in (True, False)),
        *in_url,
        *(_PERCENT_BYTE.sub(lambda byte: byte[0].lower(), form) for form in in_url),
        *in_base64,
        *(form.rstrip("=") for form in in_base64),
    )
    return tuple(dict.fromkeys(forms))


@lru_cache(maxsize=64)
def _looked_for(configured: tuple[str, ...]) -> _Configured:
    secrets = [secret for secret in configured if len(secret) >= SHORTEST]
    return _Configured(
        tuple(dict.fromkeys(form for secret in secrets for form in written_forms(secret))),
        tuple(secret.encode("utf-8", "surrogatepass") for secret in secrets if not secret.isascii()),
        any(json.dumps(secret)[1:-1] != secret for secret in secrets),
    )


def _without_secrets(text: str, configured: _Configured, depth: int) -> str:
    if len(text) < SHORTEST:
        return text
    if depth:
        text = _without_escaped(text, configured, depth - 1)
        text = _without_encoded(text, configured, depth - 1)
    folded = _folded(text)
    marks = frozenset(filter(folded.__contains__, _MARKS))
    found = [*_places_of(text, configured.forms)]
    for shapes in (_SHAPES, _NAMED) if marks or found else ():
        found += _found(text, folded, [shape for shape in shapes if shape.mark in marks])
        if found:
            text = _without(text, found)
            folded, found = _folded(text), []
    return text


def _places_of(text: str, forms: Sequence[str]) -> Iterator[_Secret]:
    """Yields where these forms of configured secrets stand."""
    for value in forms:
        at = text.find(value)
        while at >= 0:
            yield at, at + len(value), "configured"
            at = text.find(value, at + len(value))


def _without_escaped(text: str, configured: _Configured, depth: int) -> str:
    """Returns a text without the secrets that are there in what its escapes mean: it may be JSON, or hold some."""
    holds = configured.escaped and "\\" in text
    if not holds and not any(mark in text and escape.search(text) for mark, escape in _ESCAPED):
        return text
    meant = JSON_OR_PERCENT.decoded(text)
    clean = _without_secrets(meant, configured, depth)
    return text if clean == meant else JSON_OR_PERCENT.written(text, clean)


def _without_encoded(text: str, configured: _Configured, depth: int) -> str:
    """Returns a text without the base64 of bytes with a secret."""

    def clean(run: re.Match[str]) -> str:
        data = b"" if run[0].startswith(_IMAGES) else _decoded(run[0])
        # NUL in place of what is no ASCII: no key of a known shape has any.
        meant = data.translate(_ASCII).decode()
        found = any(secret in data for secret in configured.data) or _without_secrets(meant, configured, depth) != meant
        return placeholder("encoded", run[0]) if found else run[0]

    return text if len(text) < _SHORTEST_ENCODED else _BASE64.sub(clean, text)


def _decoded(encoded: str) -> bytes:
    """Returns the bytes behind base64, of which the end may be cut: one character is less than a byte."""
    bare = encoded.rstrip("=").translate(_STANDARD)
    whole = bare[: len(bare) - (len(bare) % 4 == 1)]
    return base64.b64decode(whole + "=" * (-len(whole) % 4))


def placeholder(kind: str, secret: str) -> str:
    """Returns the placeholder of a secret. Control characters in it stay."""
    name = f"[key:{kind}:{len(secret)}]"
    filled = name.ljust(len(secret), "*") if len(secret) >= len(name) else "*" * len(secret)
    if secret.isprintable():
        return filled
    return "".join(new if old.isprintable() else old for old, new in zip(secret, filled, strict=True))


def _without(text: str, found: list[_Secret]) -> str:
    """Returns a text without the secrets at these places, of which some may have parts in common: a configured one may
    be the beginning of another."""
    apart: list[_Secret] = []
    for start, stop, kind in sorted(found, key=itemgetter(0)):
        if apart and start < apart[-1][1]:
            first, end, kind = apart.pop()
            start, stop = first, max(stop, end)
        apart.append((start, stop, kind))
    parts: list[str] = []
    end = 0
    for start, stop, kind in apart:
        parts += (text[end:start], placeholder(kind, text[start:stop]))
        end = stop
    return "".join([*parts, text[end:]])


def _folded(text: str) -> str:
    """Returns a text of the same length in which letters that differ in case are the same."""
    folded = text.casefold()
    return folded if len(folded) == len(text) else "".join(char.casefold()[:1] for char in text)


def _found(text: str, folded: str, shapes: Sequence[_Shape]) -> Iterator[_Secret]:
    """Yields where the secrets of these shapes stand, from left to right."""
    end = 0
    for start, number in merge(*(_places(folded, shape, number) for number, shape in enumerate(shapes))):
        if start >= end and (match := _compiled(shapes[number].pattern).match(text, start)):
            begin, end = match.span(match.lastindex or 0)
            yield begin, end, shapes[number].kind


def _places(folded: str, shape: _Shape, number: int) -> Iterator[tuple[int, int]]:
    """Yields where a secret of this shape may begin."""
    at = folded.find(shape.mark)
    while at >= 0:
        if at + shape.offset >= 0:
            yield at + shape.offset, number
        at = folded.find(shape.mark, at + 1)
