"""Tests the estimate against the counts of two tokenizers, measured once for the texts in token_counts.json.

The counts are those of `o200k_base` and `cl100k_base` (tiktoken 0.14.0, tables of js-tiktoken 1.0.21).
"""

import base64
import json
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, File, Image, Json, Reasoning, Text, ToolResult, ToolSpec, Turn
from gateway.core.tokens import (
    AUDIO_TOKENS_A_SECOND,
    IMAGE_TOKENS,
    LEAST_IMAGE_TOKENS,
    PAGE_TOKENS,
    TURN_TOKENS,
    UNCALIBRATED,
    Calibration,
    estimate_document,
    estimate_image,
    estimate_text,
    estimate_tools,
    estimate_turn,
    estimate_view,
    prompt_size,
    prompt_tokens,
)
from gateway.testing.strategies import conversations, texts
from tests.history.strategies import calling, result, user
from tests.paths import ROOT

SAMPLES = json.loads((ROOT / "tests/core/token_counts.json").read_text(encoding="utf-8"))
# What agents send most. The two tokenizers agree on these.
OF_AGENTS = (
    "English",
    "Markdown",
    "code",
    "TypeScript",
    "diff",
    "JSON",
    "indented JSON",
    "log",
    "shell",
    "paths",
    "hex",
)


def ratio(name: str, tokenizer: str) -> float:
    sample = SAMPLES[name]
    return estimate_text(sample["text"]) / int(sample[tokenizer])


@pytest.mark.parametrize("name", SAMPLES)
def test_each_class_of_text_is_near_its_measured_count(name: str) -> None:
    assert 0.75 <= ratio(name, "o200k_base") <= 1.45
    assert 0.4 <= ratio(name, "cl100k_base") <= 1.25


def test_what_agents_send_is_right_on_average() -> None:
    for tokenizer in ("o200k_base", "cl100k_base"):
        assert 0.95 <= fmean(ratio(name, tokenizer) for name in OF_AGENTS) <= 1.05


@pytest.mark.parametrize("name", ["JSON", "hex", "base64", "UUIDs", "digits", "Chinese", "Japanese", "emoji"])
def test_a_quarter_of_the_characters_would_be_far_too_few(name: str) -> None:
    quarter = len(SAMPLES[name]["text"]) / 4 / int(SAMPLES[name]["o200k_base"])
    assert quarter < 0.7
    assert abs(ratio(name, "o200k_base") - 1) < 1 - quarter


@given(texts(), texts())
def test_law_more_text_has_no_fewer_tokens(one: str, more: str) -> None:
    assert 0 <= estimate_text(one) <= estimate_text(f"{one}\n{more}") <= estimate_text(one) + estimate_text(more) + 1


@given(st.text(st.characters(exclude_categories=())))
def test_law_any_text_has_an_estimate(text: str) -> None:
    assert 0 <= estimate_text(text) <= 2 * len(text) + 1


def test_pieces_are_counted_at_every_length() -> None:
    assert [estimate_text("a" * count) for count in (0, 1, 7, 8, 14, 15, 19)] == [0, 1, 1, 2, 2, 3, 3]
    assert [estimate_text("1" * count) for count in (1, 3, 4, 9, 10)] == [1, 1, 2, 3, 4]
    assert estimate_text("word word") == 2
    assert estimate_text("a  b     c") == 5, "each run of blanks has one price, 0.6"
    assert estimate_text("a\n\nb") == 4


def test_a_turn_counts_all_that_it_says_and_an_image_never_by_its_bytes() -> None:
    image = Image("data:image/png;base64," + "A" * 100_000)
    assert estimate_turn(user("hello")) == TURN_TOKENS + 1
    assert estimate_turn(Turn("user", (Text("hello"), image))) == TURN_TOKENS + 1 + IMAGE_TOKENS
    assert estimate_turn(Turn("user", (File("input_audio", {"data": "A" * 100_000}),))) == TURN_TOKENS + PAGE_TOKENS
    assert estimate_turn(Turn("assistant", (Reasoning("hello hello"),))) == TURN_TOKENS + 2
    assert estimate_turn(calling("a")) == 2 * TURN_TOKENS + estimate_text("read") + estimate_text('{"n": 0}')
    shown = Turn("tool", (ToolResult("a", (Text("hello"), image)),))
    assert estimate_turn(shown) == estimate_turn(result("a", "hello")) + IMAGE_TOKENS


def test_the_view_is_the_tools_and_the_turns() -> None:
    tools = (ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
    whole = estimate_view(Conversation((user("hello"),), tools))
    assert whole == estimate_tools(tools) + TURN_TOKENS + 1
    assert estimate_tools(tools) > estimate_text("readReads a file.")


def _png(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return "data:image/png;base64," + base64.b64encode(head + bytes(1_000)).decode()


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    # The sizes and counts of Anthropic's page, "Vision": about 54 for 200 x 200, 1,334 for 1000 x 1000.
    [
        (1, 1, LEAST_IMAGE_TOKENS),
        (200, 200, LEAST_IMAGE_TOKENS),
        (1000, 1000, 1_334),
        (1092, 1092, 1_590),
        (8000, 8000, IMAGE_TOKENS),
    ],
)
def test_an_image_counts_by_its_pixels(width: int, height: int, tokens: int) -> None:
    assert estimate_image(_png(width, height)) == tokens


@pytest.mark.parametrize("url", ["https://example.org/a.png", "data:image/png;base64,aGk=", "data:image/png;base64,!"])
def test_an_image_whose_size_cannot_be_read_counts_as_the_largest(url: str) -> None:
    assert estimate_image(url) == IMAGE_TOKENS


def _wav(seconds: int, rate: int = 32_000) -> bytes:
    """The head of a WAV file and its samples: `rate` is in bytes a second."""
    size = seconds * rate
    head = b"RIFF" + (36 + size).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    head += b"\1\0\1\0" + (rate // 2).to_bytes(4, "little") + rate.to_bytes(4, "little") + b"\2\0\x10\0"
    return head + b"data" + size.to_bytes(4, "little") + bytes(size)


@pytest.mark.parametrize("seconds", [1, 10, 60])
def test_audio_counts_by_its_seconds(seconds: int) -> None:
    wav = base64.b64encode(_wav(seconds)).decode()
    mp3 = base64.b64encode(bytes(16_000 * seconds)).decode()
    parts = (
        File("input_audio", {"type": "input_audio", "input_audio": {"data": wav, "format": "wav"}}),
        File("inlineData", {}, url=f"data:audio/wav;base64,{wav}"),
        File("input_audio", {"type": "input_audio", "input_audio": {"data": mp3, "format": "mp3"}}),
        File("inlineData", {}, url=f"data:audio/mpeg;base64,{mp3}"),
    )
    for part in parts:
        counted = estimate_turn(Turn("user", (part,))) - TURN_TOKENS
        assert counted == pytest.approx(AUDIO_TOKENS_A_SECOND * seconds, rel=0.02, abs=1)


def test_audio_without_a_readable_size_counts_as_a_page() -> None:
    audios: list[Json] = [7, {"data": 7}, {}]
    for audio in audios:
        part = File("input_audio", {"input_audio": audio})
        assert estimate_turn(Turn("user", (part,))) == TURN_TOKENS + PAGE_TOKENS


def _pdf(pages: int, filler: int = 0) -> str:
    page = b"<< /Type /Page /Parent 2 0 R >>\n" + b" " * filler
    data = b"%PDF-1.4\n<< /Type /Pages /Kids [] >>\n" + page * pages
    return "data:application/pdf;base64," + base64.b64encode(data).decode()


def test_a_document_counts_by_its_pages_and_a_text_by_its_words() -> None:
    assert estimate_document(_pdf(7)) == 7 * PAGE_TOKENS
    assert estimate_document(_pdf(0)) == estimate_document("https://example.org/a.pdf") == PAGE_TOKENS
    assert estimate_document("data:text/plain,word%20word") == 2
    # Only the beginning of a large one is read.
    assert estimate_document(_pdf(100, 20_000)) == pytest.approx(100 * PAGE_TOKENS, rel=0.1)
    shown = Turn("user", (File("document", {}, url=_pdf(3)),))
    assert estimate_turn(shown) == TURN_TOKENS + 3 * PAGE_TOKENS


@given(conversations())
def test_law_the_estimate_for_a_response_is_that_of_the_request(conversation: Conversation) -> None:
    whole, texts = (
        estimate_view(conversation),
        3 * len(conversation.tools) + 2 * sum(len(turn.blocks) for turn in conversation.turns),
    )
    assert abs(prompt_tokens(conversation) - whole) <= texts + 1


def test_a_long_conversation_is_estimated_from_samples_of_a_bounded_length() -> None:
    turns = [user(SAMPLES[name]["text"]) for name in SAMPLES] * 40
    random.Random(7).shuffle(turns)
    asked = Conversation(tuple(turns))
    assert prompt_size(asked) > 400_000
    assert prompt_tokens(asked) == pytest.approx(estimate_view(asked), rel=0.1)
    read: list[int] = []

    def counted(text: str) -> int:
        read.append(len(text))
        return estimate_text(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.core.tokens.estimate_text", counted)
        prompt_tokens(asked)
    assert sum(read) < 20_000


def test_the_calibration_follows_what_a_model_reports() -> None:
    assert UNCALIBRATED.tokens(1_000) == 1_000
    first = UNCALIBRATED.after(1_000, 1_300)
    assert first == Calibration(1.3, 1)
    later = first
    for _ in range(30):
        later = later.after(1_000, 2_000)
    assert 1.99 < later.ratio <= 2.0
    assert later.tokens(1_000) == pytest.approx(2_000, abs=10)


def test_one_response_moves_a_settled_calibration_little() -> None:
    settled = Calibration(1.0, 50)
    assert settled.after(1_000, 3_000).ratio == pytest.approx(1.4)


@pytest.mark.parametrize("reported", [None, 0, -5])
def test_a_count_that_says_nothing_changes_nothing(reported: int | None) -> None:
    known = Calibration(1.4, 3)
    assert known.after(1_000, reported) is known
    assert known.after(0, 1_000) is known


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**7)), max_size=20))
def test_law_the_ratio_stays_within_its_bounds(counts: list[tuple[int, int]]) -> None:
    known = UNCALIBRATED
    for estimated, reported in counts:
        known = known.after(estimated, reported)
    assert 0.5 <= known.ratio <= 3.0
