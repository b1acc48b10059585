"""Estimates how many tokens a text, an image or a request takes, without the tokenizer of the model behind.

A tokenizer splits a text into runs of one kind of character before it looks for known pieces. So the estimate counts
runs, with one price for each kind; the prices were fitted to the tokenizers `o200k_base` and `cl100k_base`
(tests/core/token_counts.json). They differ by up to 2.1 between themselves: a `Calibration` follows the
model at hand.

Images and files count as providers publish it, never by their bytes; one whose size cannot be read counts as the
largest.
"""

import base64
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import msgspec

from gateway.core.conversation import (
    Block,
    Conversation,
    File,
    Image,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
    kept,
)
from gateway.core.data_url import held_data, is_data_url
from gateway.core.image_size import read_image_size

# What a chat template writes around each message.
TURN_TOKENS: Final = 4
# Anthropic, "Vision": width * height / 750; a larger image than this is scaled down first.
IMAGE_TOKENS: Final = 1_600
_PIXELS_A_TOKEN: Final = 750
# OpenAI, "Images and vision": what its models count of an image at least (GPT-4o, the base tokens).
LEAST_IMAGE_TOKENS: Final = 85
# Anthropic, "PDF support": 1,500 to 3,000 tokens a page, beside the page as an image.
PAGE_TOKENS: Final = 3_000
# Google, "Audio understanding": what its models count of audio.
AUDIO_TOKENS_A_SECOND: Final = 32
# Of audio that does not say how many bytes a second takes, as WAV does: 128 kbit/s, as MP3 usually has.
_AUDIO_BYTES_A_SECOND: Final = 16_000
# Where an image says its size: in its first bytes, behind what a camera writes.
_IMAGE_HEAD: Final = 64 * 1_024
_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PAGES_SAMPLE: Final = 256 * 1_024

# Of a conversation with more characters, so many samples of this length are read for the usage of one response: each
# may have to be estimated, and the cost must not grow with the history.
_SAMPLED: Final = 16 * 1_024
_SAMPLE: Final = 256

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
    total = _around_tokens(turn)
    for block in turn.blocks:
        if isinstance(block, ToolCall):
            total += estimate_text(block.name) + estimate_text(block.arguments)
        elif not isinstance(block, Image | File):
            total += estimate_text(block.text)
    return total


def _around_tokens(turn: Turn) -> int:
    """Returns the tokens of a message beside its text."""
    return TURN_TOKENS + sum([_around_block(block) for block in turn.blocks if type(block) is not Text])


def _around_block(block: Block) -> int:
    match block:
        case ToolCall():
            return TURN_TOKENS
        case Image() | File():
            return _shown_tokens(block)
        case ToolResult():
            return sum([_shown_tokens(part) for part in block.content if type(part) is not Text])
        case _:
            return 0


def _shown_tokens(part: Image | File) -> int:
    if isinstance(part, Image):
        return estimate_image(part.url)
    if part.url:
        return estimate_document(part.url)
    audio = part.part.get("input_audio")
    data = audio.get("data") if isinstance(audio, dict) else None
    return estimate_document(f"data:audio/x;base64,{data}") if data and isinstance(data, str) else PAGE_TOKENS


def estimate_image(url: str) -> int:
    """Returns the estimated number of tokens of the image at a URL, by its size where the URL holds the image."""
    held = held_data(_beginning(url, _IMAGE_HEAD))
    size = None if held is None else read_image_size(base64.b64decode(held.data))
    if size is None:
        return IMAGE_TOKENS
    width, height = size
    return min(max(math.ceil(width * height / _PIXELS_A_TOKEN), LEAST_IMAGE_TOKENS), IMAGE_TOKENS)


def estimate_document(url: str) -> int:
    """Returns the estimated number of tokens of the document at a URL: of a text its own, of audio that of its
    seconds, of a PDF file its pages', as far as they can be counted in it, and of any other document one page's."""
    held = held_data(_beginning(url, _PAGES_SAMPLE))
    if held is None:
        return PAGE_TOKENS
    data = base64.b64decode(held.data)
    share = max(1.0, len(url) / (_PAGES_SAMPLE * 4 / 3))
    if held.media_type.startswith("text/"):
        return math.ceil(share * estimate_text(data.decode("utf-8", "replace")))
    if held.media_type.startswith("audio/"):
        return math.ceil(AUDIO_TOKENS_A_SECOND * share * len(data) / _audio_rate(data))
    return PAGE_TOKENS * max(1, round(share * len(_PAGE.findall(data))))


def _audio_rate(data: bytes) -> int:
    """Returns the number of bytes a second. (RIFF WAVE: "byte rate" of the format chunk.)"""
    stated = int.from_bytes(data[28:32], "little") if data[:4] == b"RIFF" and data[8:16] == b"WAVEfmt " else 0
    return stated or _AUDIO_BYTES_A_SECOND


def _beginning(url: str, size: int) -> str:
    """Returns a `data:` URL that holds the first bytes, this many at most; any other URL as it is."""
    return url[: url.find(",") + 1 + size // 3 * 4] if is_data_url(url) else url


def estimate_turns(turns: Sequence[Turn]) -> int:
    """Returns the estimated number of tokens of messages."""
    return sum(map(estimate_turn, turns))


def estimate_tools(tools: Sequence[ToolSpec]) -> int:
    """Returns the estimated number of tokens of the functions that a request offers."""
    return sum(estimate_text(tool.name + tool.description + kept(tool, "parameters", _parameters)) for tool in tools)


def estimate_view(conversation: Conversation) -> int:
    """Returns the estimated number of tokens of everything that a request sends: system text, tools and messages."""
    return estimate_tools(conversation.tools) + estimate_turns(conversation.turns)


def prompt_tokens(conversation: Conversation) -> int:
    """Returns `estimate_view` for the usage of a response: a long conversation is estimated by samples of its text."""
    texts, around = _read(conversation)
    ends = [*accumulate(map(len, texts))]
    size = ends[-1] if ends else 0
    if size <= _SAMPLED:
        return around + estimate_text("\n".join(texts))
    samples = "\n".join(_samples(texts, ends, size * _SAMPLE // _SAMPLED))
    return around + math.ceil(estimate_text(samples) * (size / len(samples)))


def prompt_size(conversation: Conversation) -> int:
    """Returns the number of bytes, in UTF-8, of the text that a request sends."""
    return sum(
        len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in _read(conversation)[0]
    )


def _read(conversation: Conversation) -> tuple[list[str], int]:
    """Returns all texts that a request sends, and the tokens around them. Reads all of a long request, so that a text
    and the result of a tool, the most frequent blocks, need no call."""
    texts: list[str] = []
    around = TURN_TOKENS * len(conversation.turns)
    for turn in conversation.turns:
        for block in turn.blocks:
            if type(block) is Text:
                texts.append(block.text)
            elif type(block) is ToolResult and len(block.content) == 1 and type(part := block.content[0]) is Text:
                texts.append(part.text)
            elif isinstance(block, ToolCall):
                texts += (block.name, block.arguments)
                around += TURN_TOKENS
            else:
                around += _around_block(block)
                if not isinstance(block, Image | File):
                    texts.append(block.text)
    for tool in conversation.tools:
        texts += (tool.name, tool.description, kept(tool, "parameters", _parameters))
    return texts, around


def _samples(texts: Sequence[str], ends: Sequence[int], step: int) -> Iterator[str]:
    """Yields a piece at every `step` characters of texts that follow one another, of which each ends at its place
    in `ends`."""
    for due in range(0, ends[-1], step):
        at = bisect_right(ends, due)
        begin = ends[at] - len(texts[at])
        yield texts[at][due - begin : due - begin + _SAMPLE]


def _parameters(tool: ToolSpec) -> str:
    return msgspec.json.encode(tool.parameters, enc_hook=dict).decode()


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
