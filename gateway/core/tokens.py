"""Estimates how many tokens a text takes, without the tokenizer of the model behind.

A tokenizer splits a text into runs of one kind of character before it looks for known pieces. So the estimate counts
runs, with one price for each kind; the prices were fitted to the tokenizers `o200k_base` and `cl100k_base`
(tests/core/token_counts.json). They differ by up to 2.1 between themselves: a `Calibration` follows the
model at hand.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, File, Image, Reasoning, Text, ToolCall, ToolSpec, Turn

# What a chat template writes around each message.
TURN_TOKENS: Final = 4
# Models count an image by its tiles, never by its bytes.
IMAGE_TOKENS: Final = 1_000

_UPPER: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER: Final = _UPPER.lower()
_DIGITS: Final = b"0123456789"
_LETTERS_A_TOKEN: Final = 7
_DIGITS_A_TOKEN: Final = 3
_NEWLINE_PRICE: Final = 0.7
_BLANKS_PRICE: Final = 0.6
_OTHER_ASCII_PRICE: Final = 0.6

# Keys, digests and encoded bytes: tokenizers know few pieces of them. The more often the kind of character changes,
# the fewer.
_CODE_SIGNS: Final = _UPPER + _LOWER + _DIGITS + b"+/="
_SHORTEST_CODE: Final = 20
_CODE: Final = re.compile(rb"[A-Za-z0-9+/=]{20,}")
_KINDS: Final = re.compile(rb"[a-z]+|[A-Z]+|[0-9]+|[+/=]+")
_CODE_SAMPLE: Final = 4_096
# (share of steps between characters above which the price holds, price of a character)
_CODE_PRICES: Final = ((0.5, 0.7), (0.33, 0.58), (0.0, 0.25))

_UNPRICED: Final = _UPPER + _LOWER + _DIGITS + b" \t\n\r"
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_BEYOND_ASCII: Final = bytes(range(0x80, 0x100))
# The first bytes of a character in UTF-8, which determine its script, and the price of the character.
_SCRIPT_PRICES: Final = (
    (bytes(range(0xC2, 0xE0)), 0.45),  # below U+0800: Latin, Greek, Cyrillic, Hebrew, Arabic
    (bytes(range(0xE0, 0xE3)), 0.55),  # U+0800 to U+2FFF: the scripts of India, Thai, signs
    (b"\xe3", 0.75),  # U+3000 to U+3FFF: kana
    (bytes(range(0xE4, 0xEA)), 0.8),  # U+4000 to U+9FFF: Han
    (bytes(range(0xEA, 0xEE)), 0.7),  # U+A000 to U+DFFF: Hangul
    (b"\xee\xef", 0.55),
    (bytes(range(0xF0, 0xF5)), 2.0),  # beyond U+FFFF: emoji
)


# Maps the bytes of one kind to `a` and all others to a blank: counts of such short patterns are many times faster than
# a search for the runs themselves.
def _only(kind: bytes) -> bytes:
    return bytes(0x61 if byte in kind else 0x20 for byte in range(256))


_ONLY_LETTERS: Final = _only(_UPPER + _LOWER)
_ONLY_DIGITS: Final = _only(_DIGITS)
_ONLY_CODE: Final = _only(_CODE_SIGNS)
_ONLY_BLANKS: Final = _only(b" \t")


def estimate_text(text: str) -> int:
    """Returns the estimated number of tokens of a text."""
    data = text.encode("utf-8", "surrogatepass")
    price = 0.0
    if b"a" * _SHORTEST_CODE in data.translate(_ONLY_CODE):
        price += sum(map(_code_price, _CODE.findall(data)))
        data = _CODE.sub(b"", data)
    price += _pieces(data.translate(_ONLY_LETTERS), _LETTERS_A_TOKEN)
    price += _pieces(data.translate(_ONLY_DIGITS), _DIGITS_A_TOKEN)
    price += _BLANKS_PRICE * (b" " + data.translate(_ONLY_BLANKS)).count(b" aa")
    price += _NEWLINE_PRICE * data.count(b"\n")
    signs = data.translate(None, _UNPRICED)
    if not signs.isascii():
        price += _scripts_price(signs)
        signs = signs.translate(None, _BEYOND_ASCII)
    return math.ceil(price + _OTHER_ASCII_PRICE * len(signs))


def _pieces(mapped: bytes, longest: int) -> int:
    """Returns into how many pieces of at most `longest` bytes the runs of `a` fall."""
    if b"a" not in mapped:
        return 0
    whole = (b" " + mapped).replace(b"a" * longest, b"b")
    return whole.count(b"b") + whole.count(b" a") + whole.count(b"ba")


def _code_price(run: bytes) -> float:
    sample = run[:_CODE_SAMPLE]
    changes = (len(_KINDS.findall(sample)) - 1) / (len(sample) - 1)
    return len(run) * next(price for share, price in _CODE_PRICES if changes >= share)


def _scripts_price(signs: bytes) -> float:
    leads = signs.translate(None, _CONTINUATION)
    return sum(price * (len(leads) - len(leads.translate(None, first))) for first, price in _SCRIPT_PRICES)


def estimate_turn(turn: Turn) -> int:
    """Returns the estimated number of tokens of one message, with those that a template writes around it."""
    total = TURN_TOKENS
    for block in turn.blocks:
        match block:
            case Text() | Reasoning():
                total += estimate_text(block.text)
            case ToolCall():
                total += TURN_TOKENS + estimate_text(block.name) + estimate_text(block.arguments)
            case Image() | File():
                total += IMAGE_TOKENS
            case _:
                total += estimate_text(block.text)
                total += IMAGE_TOKENS * sum(not isinstance(part, Text) for part in block.content)
    return total


def estimate_turns(turns: Sequence[Turn]) -> int:
    """Returns the estimated number of tokens of messages."""
    return sum(map(estimate_turn, turns))


def estimate_tools(tools: Sequence[ToolSpec]) -> int:
    """Returns the estimated number of tokens of the functions that a request offers."""
    return sum(estimate_text(tool.name + tool.description + _written(tool.parameters)) for tool in tools)


def estimate_view(conversation: Conversation) -> int:
    """Returns the estimated number of tokens of everything that a request sends: system text, tools and messages."""
    return estimate_tools(conversation.tools) + estimate_turns(conversation.turns)


def _written(parameters: object) -> str:
    return json.dumps(parameters, ensure_ascii=False, separators=(",", ":"), default=dict)


class Calibration(msgspec.Struct, frozen=True):
    """The ratio of reported to estimated tokens of one model, as a moving average over its responses."""

    ratio: float = 1.0
    samples: int = 0

    def after(self, estimated: int, reported: int | None) -> "Calibration":
        """Returns the calibration after a response. A count of 0 or none at all says nothing and changes nothing."""
        if not reported or reported < 0 or estimated <= 0:
            return self
        weight = max(1 / (self.samples + 1), LEAST_WEIGHT)
        found = min(max(reported / estimated, LEAST_RATIO), LARGEST_RATIO)
        return Calibration(self.ratio + weight * (found - self.ratio), self.samples + 1)

    def tokens(self, estimated: int) -> int:
        """Returns the number of tokens that this model is expected to count."""
        return math.ceil(self.ratio * estimated)


LEAST_RATIO: Final = 0.5
LARGEST_RATIO: Final = 3.0
# The weight of one more response, once there are some.
LEAST_WEIGHT: Final = 0.2
UNCALIBRATED: Final = Calibration()
