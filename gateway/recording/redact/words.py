"""Replaces the words and numbers of a text by others of the same shape and length, the same word always by the same."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from gateway.core.provider_state import LABEL, label_of
from gateway.core.secrets import PLACEHOLDER
from gateway.recording.lines import RedactionLevel

_VOCABULARY: Final = """
user assistant system developer tool tools human model function functions role content text type name id call
calls called result results with args arguments parameters input output action final answer thought
observation tool_call tool_calls toolcall mcp invoke function_call json object array string number integer
boolean null true false none end stop done data event error message messages think thinking reasoning im start
eot header bos eos inst http https image png jpeg gif webp base64 audio file toolu msg resp chatcmpl fc rs
cmpl gen key bearer property properties low medium high minimal agent anthropic billing cc version cch
x server required description finished duration
"""
# By these words of a refusal, a prompt that is too long and an exhausted quota are distinguished from other faults.
_REFUSALS: Final = """
prompt is too long maximum max context length size window exceed exceeds limit tokens number of allowed inputs and
must have less larger than large no ai requests remaining quota out credits
your request requested you at least about in the completion resulted contains has passed only longer greater be given
token count exceeded but for first when overflows is small available reduce more range should to which equal supports
most value model models however s new this or deployment configured many total cannot received by got outside
"""
# Words of the protocols, of the formats of tool calls and of transcripts: passes act on them.
VOCABULARY: Final = frozenset((*_VOCABULARY.split(), *_REFUSALS.split()))
# A long run of base64 is an image, a file or a signature: its characters mean nothing to any pass. The label before a
# state decides which backend gets it.
_TOKEN: Final = re.compile(
    rf"({PLACEHOLDER}"
    rf"|{LABEL}"
    r"|[A-Za-z0-9+/_-]{120,}={0,2}"
    r"|base64|\\u[0-9a-fA-F]{4}|\\[bfnrt]"
    r"|\d+(?:\.\d+)?[eE][+-]?\d+(?![A-Za-z])"
    r"|\d+"
    r"|[^\W\d_]+)"
)
# The types of the details of a gRPC error that the gateway reads (google/rpc/error_details.proto).
_DETAIL: Final = re.compile(r"type\.googleapis\.com/google\.rpc\.(?:BadRequest|ErrorInfo|QuotaFailure|RetryInfo)")
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_.:/+=-]*+")
_UNLIKE_WORD: Final = re.compile(r"\d|[_.:/][A-Za-z]")
# What is part of no token.
_BETWEEN: Final = re.compile(r"[\s,;\"'(){}<>]")
_BLOCK: Final = 2**15
_STUB: Final = 120
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
# The beginning of a file in base64 shows its type; eight characters tell two files apart.
_MAGIC: Final = 12
_MARK: Final = 8
_TRIES: Final = 256
_NEIGHBOURS: Final = 32
# Of numbers with more digits there are so many that one request does not have them all.
_FEW_DIGITS: Final = 3
_LOWER: Final = bytes(ord("a") + number % 26 for number in range(256))
# One letter for each length in UTF-8.
_MASKS: Final = {1: "x", 2: "ж", 3: "字", 4: "𐐨"}


def is_identifier(text: str) -> bool:
    """Returns whether a text is an id, by its shape: characters of ids with a digit among them."""
    return _IDENTIFIER.fullmatch(text) is not None and _UNLIKE_WORD.search(text) is not None


def words_of(text: str) -> frozenset[str]:
    """Returns the words of a text in lower case."""
    return frozenset(word.lower() for word in re.findall(r"[^\W\d_]+", text))


class Words:
    """The replacements of one recording. Two words get the same one only where there are not enough of that shape.

    `kept` are words that stay, in lower case, beside the `VOCABULARY`; `seed` makes the replacements unpredictable.
    At the level `full` every word becomes `x`; numbers and ids keep their difference.
    """

    def __init__(self, level: RedactionLevel, seed: bytes, kept: Iterable[str] = ()) -> None:
        self._level = level
        self._seed = seed
        self._kept: Collection[str] = VOCABULARY | frozenset(kept)
        self._found: dict[str, str] = {}
        self._used: set[str] = set()
        self._shaped = _Replacements(self._replace)
        self._masked = _Replacements(self._mask)

    def text(self, text: str) -> str:
        """Returns a text of the same length, also in UTF-8."""
        if self._level == "none" or _DETAIL.fullmatch(text):
            return text
        return (self._masked if self._level == "full" and not is_identifier(text) else self._shaped).text(text)

    def stub(self, content: str) -> str:
        """Returns base64 of the same size and type in place of a file; text that is no base64 as `text` returns it."""
        if self._level == "none" or not _BASE64.fullmatch(content):
            return self.text(content)
        if label := label_of(content):
            return label + self.stub(content[len(label) :])
        bare = content.rstrip("=")
        mark = hashlib.shake_128(self._seed + content.encode()).hexdigest(_MARK // 2)
        return (content[:_MAGIC] + mark).ljust(len(bare), "A") + content[len(bare) :]

    def _mask(self, token: str) -> str:
        if self._stays(token):
            return token
        if token[0].isdecimal() or len(token) >= _STUB:
            return self._replace(token)
        return "".join(_mask_letter(char) for char in token)

    def _replace(self, token: str) -> str:
        if self._stays(token):
            return token
        if len(token) >= _STUB:
            return self.stub(token)
        key = token.lower() if token.isascii() else token
        new = self._found.get(key)
        if new is None:
            new = self._found[key] = _other_number(self._seed, key) or self._unused(key)
        if key == token:
            return new
        return "".join(to.upper() if was.isupper() else to for was, to in zip(token, new, strict=True))

    def _stays(self, token: str) -> bool:
        return token[0] in "[\\" or bool(label_of(token)) or token.lower() in self._kept or token.strip("0") == ""

    def _unused(self, key: str) -> str:
        drawn = key
        for attempt in range(_TRIES):
            drawn = self._drawn(key, attempt)
            if drawn not in self._used and drawn not in self._kept and drawn != key:
                break
        else:
            drawn = drawn if key in self._used else key
        self._used.add(drawn)
        return drawn

    def _drawn(self, key: str, attempt: int) -> str:
        stretched = hashlib.shake_128(self._seed + attempt.to_bytes(2, "big") + key.encode("utf-8", "surrogatepass"))
        draw = stretched.digest(len(key))
        if key[0].isdecimal():
            # The exponent of a number is its magnitude.
            mantissa, mark, exponent = key.partition("e")
            return "".join(map(_digit, mantissa, draw, [True] + [False] * len(key))) + mark + exponent
        return draw.translate(_LOWER).decode() if key.isascii() else "".join(map(_letter, key, draw))


def _other_number(seed: bytes, key: str) -> str:
    """Returns the replacement of a number of few digits, behind its leading zeros: of ids such as `call_1`, all that
    there are may be in one request, and they stay different. Empty for anything else."""
    number = key.lstrip("0")
    if len(number) > _FEW_DIGITS or not (number.isascii() and number.isdecimal()):
        return ""
    return key[: -len(number)] + _circle(seed, len(number))[number]


@lru_cache(maxsize=64)
def _circle(seed: bytes, digits: int) -> Mapping[str, str]:
    """Returns each number of so many digits with the next one in an order that the seed alone tells."""
    numbers = [str(number) for number in range(10 ** (digits - 1), 10**digits)]
    numbers.sort(key=lambda number: hashlib.blake2b(number.encode(), key=seed[: hashlib.blake2b.MAX_KEY_SIZE]).digest())
    return dict(zip(numbers, [*numbers[1:], numbers[0]], strict=True))


def _blocks(text: str) -> Iterator[str]:
    """Yields a text in pieces that cut no word: other threads wait while one is searched."""
    start = 0
    while len(text) - start > _BLOCK and (found := _BETWEEN.search(text, start + _BLOCK)):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


class _Replacements:
    """Replaces the tokens of texts, and knows those that it has replaced. Most come again, also with what stands around
    them up to the next space; no token has a space in it."""

    def __init__(self, replace: Callable[[str], str]) -> None:
        self._replace = replace
        self._tokens: dict[str, str] = {}
        self._words: dict[str, str] = {}

    def text(self, text: str) -> str:
        known = self._words
        words = text.split(" ")
        if unknown := [word for word in dict.fromkeys(words) if word not in known]:
            replaced = "".join(map(self._block, _blocks(" ".join(unknown))))
            known.update(zip(unknown, replaced.split(" "), strict=True))
        return " ".join([known[word] for word in words])

    def _block(self, text: str) -> str:
        known = self._tokens
        pieces = _TOKEN.split(text)
        tokens = pieces[1::2]
        known.update({token: self._replace(token) for token in dict.fromkeys(tokens) if token not in known})
        pieces[1::2] = [known[token] for token in tokens]
        return "".join(pieces)


def _mask_letter(char: str) -> str:
    return _MASKS[len(char.encode())] if char.isalpha() else char


def _digit(char: str, number: int, first: bool) -> str:
    if not (char.isdecimal() and char.isascii()) or (first and char == "0"):
        return char
    # No number begins with a zero that did not.
    return str(1 + number % 9) if first else str(number % 10)


def _letter(char: str, number: int) -> str:
    letters = _letters(char)
    return letters[number % len(letters)]


@lru_cache(maxsize=4096)
def _letters(char: str) -> str:
    """Returns the letters near this one with its category, its case and its length in UTF-8; at least itself."""
    if char.isascii():
        return "abcdefghijklmnopqrstuvwxyz" if char.islower() else "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    first = ord(char) - ord(char) % _NEIGHBOURS
    category, size = unicodedata.category(char), len(char.encode())
    near = (chr(code) for code in range(first, first + _NEIGHBOURS) if not 0xD800 <= code < 0xE000)
    found = "".join(one for one in near if unicodedata.category(one) == category and len(one.encode()) == size)
    return found or char
