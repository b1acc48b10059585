"""A truncated tool result keeps its head and its tail, and states the length of the removed part."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Image, Text, ToolResult, Turn
from gateway.history.trim.truncate import elision, is_elided, shorten, shortened
from tests.history.strategies import numbered, result, user


def test_head_and_tail_are_kept_around_the_marker() -> None:
    text = "a" * 500 + "z" * 500
    short = shortened(text, 100)
    head, marker, tail = short.split("\n")
    assert (head, tail) == ("a" * 39, "z" * 39)
    assert marker == f"[elided: {1000 - 39 - 39} chars]"
    assert len(short) <= 100


@pytest.mark.parametrize("limit", [0, 1, 10, 20])
def test_without_room_only_the_marker_is_left(limit: int) -> None:
    assert shortened("x" * 1000, limit) == "[elided: 1000 chars]"
    assert shortened("[elided: 1000 chars]", limit) == "[elided: 1000 chars]"


@pytest.mark.parametrize("limit", [5, 6, 100])
def test_a_text_within_its_limit_is_left_alone(limit: int) -> None:
    assert shortened("hello", limit) == "hello"


@pytest.mark.parametrize(("size", "stays"), [(10, True), (18, True), (19, False)])
def test_no_text_grows_by_being_shortened(size: int, stays: bool) -> None:
    assert shortened("x" * size, 5) == ("x" * size if stays else f"[elided: {size} chars]")


@pytest.mark.parametrize(
    "sign", ["e\u0301\u0327", "👩\u200d👩\u200d👧", "👍🏽", "\r\n", "❤\ufe0f", "नि", "\ud83d\ude00"]
)
def test_no_sign_is_cut_in_two(sign: str) -> None:
    for limit in range(30, 60):
        short = shortened(sign * 100, limit)
        if is_elided(short):
            continue
        head, _, rest = short.partition("\n[elided")
        tail = rest.partition("]\n")[2]
        assert head.replace(sign, "") == ""
        assert tail.replace(sign, "") == ""


@given(st.text(st.sampled_from("ab\u0301\u200d\r\n👍"), max_size=300), st.integers(0, 120))
def test_law_shortening_counts_right_stays_within_the_limit_and_is_done_once(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= max(limit, len(elision(len(text))))
    assert shortened(short, limit) == short
    if short != text and not is_elided(short):
        head, tail = len(short.partition("\n[elided")[0]), len(short.rpartition("chars]\n")[2])
        assert short == f"{text[:head]}\n{elision(len(text) - head - tail)}\n{text[len(text) - tail :]}"


def test_a_sign_as_long_as_the_room_leaves_only_the_marker() -> None:
    sign = "👩" + "\u200d👩" * 14
    assert shortened(sign * 2, 30) == f"[elided: {len(sign) * 2} chars]"


def test_a_pile_of_marks_costs_no_more_than_its_length() -> None:
    text = "a" + "\u0301" * 1_000_000
    assert unicodedata.combining(text[1])
    assert len(shortened(text, 1000)) <= 1000


def test_results_are_shortened_with_a_notice_each_and_turns_lose_their_source() -> None:
    turns = numbered(user("x" * 100), result("a", "y" * 100), result("b", "short"))
    new, notices = shorten(turns, 60)
    assert [turn.source is None for turn in new] == [False, True, False]
    assert new[0] is turns[0]
    assert new[2] is turns[2]
    assert [(n.rule, n.index, n.tool_call_id, n.detail) for n in notices] == [
        (
            "TOOL_RESULT_SHORTENED",
            1,
            "a",
            f"a tool result was shortened from 100 to {len(new[1].results[0].text)} characters",
        )
    ]
    assert shorten(new, 60) == (new, [])


def test_only_the_long_one_of_two_results_in_a_turn_is_shortened() -> None:
    both = Turn("tool", (ToolResult("a", (Text("short"),)), ToolResult("b", (Text("x" * 100),))))
    (turn,), notices = shorten([both], 60)
    assert turn.results[0] is both.results[0]
    assert [notice.tool_call_id for notice in notices] == ["b"]


def test_no_limit_changes_nothing() -> None:
    turns = numbered(result("a", "y" * 100))
    assert shorten(turns, None) == (turns, [])


def test_images_stay_and_flags_and_fields_too() -> None:
    image = Image("data:x")
    lone = ToolResult("a", (Text("x" * 100, {"cache_control": 1}), image), is_error=True, synthesized=True)
    several = ToolResult("b", (Text("x" * 50), image, Text("y" * 50)))
    (turn,), _ = shorten([Turn("tool", (lone, several))], 60)
    first, second = turn.results
    assert first.content == (Text(first.text, {"cache_control": 1}), image)
    assert (first.is_error, first.synthesized) == (True, True)
    assert second.content == (Text(second.text), image)
    assert second.text.startswith("x") and second.text.endswith("y")
