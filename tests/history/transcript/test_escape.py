"""Hostile bodies cost no more than their length, and configured labels are escaped like the built-in ones."""

import re
import tracemalloc
import unicodedata
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.policy import Labels
from gateway.history.transcript import escape as guard
from gateway.history.transcript.escape import guarded, needs_guard, token
from tests.history.transcript.parse import unguarded, untoken


class _Counted:
    """A pattern that counts how many characters it is given to match, each time from the beginning of a line."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern.pattern
        self.given = 0
        self._pattern = pattern

    def match(self, line: str) -> re.Match[str] | None:
        self.given += len(line)
        return self._pattern.match(line)


@pytest.mark.parametrize(
    "unit",
    ["\n", " ", "#", "user ", "user (", "\nuser", "tool result", "\n" + " " * 50, "user\t)", "> ", "\u200b", "ﷺ"],
)
@pytest.mark.parametrize("beginning", ["", "user (", "tool result "])
def test_every_line_of_a_hostile_body_is_looked_at_once(
    unit: str, beginning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain: Any = guard._guard(Labels())
    begins, may_begin, opens = map(_Counted, (plain.begins, plain.may_begin, plain.opens))
    counted = msgspec.structs.replace(plain, begins=begins, may_begin=may_begin, opens=opens)
    monkeypatch.setattr(guard, "_guard", lambda labels: counted)
    body = beginning + unit * (20_000 // len(unit))
    assert unguarded(guarded(body, Labels())) == body
    # Once as it is and, where compatibility characters stand in it, once more as they read.
    assert begins.given + may_begin.given + opens.given <= len(body) + len(unicodedata.normalize("NFKC", body))


def test_a_label_is_never_tried_twice_at_one_place() -> None:
    """A repetition that gives back what it took would make a line of blanks cost the square of its length."""
    plain = guard._guard(Labels())
    for pattern in (plain.begins, plain.may_begin, plain.opens, plain.closes):
        repetitions = re.findall(r"(?<!\\)[*][+?]?", re.sub(r"\[(?:\\.|[^\]\\])*\]", "[]", pattern.pattern))
        assert repetitions.count("*?") == (pattern is plain.begins)
        assert set(repetitions) <= {"*+", "*?"}


# What labels are made of, and what may stand around them in any spelling.
_PARTS: Final = (
    *(
        " ",
        "\t",
        "#",
        "*",
        "_",
        "\u200b",
        "\u00a0",
        "\u3000",
        "＊",
        "> ",
        "＞ ",
        "x",
        "a" * 20,
        " " * 20,
        "\u200b" * 17,
    ),
    *("User", "user", "Tool result", "Tool calls", "Tool", "Système", "Syste\u0300me", "Йот", "И\u0306от"),
    *("한글", "\u1112\u1161\u11ab\u1100\u1173\u11af", ":", "：", "⩴", "(", ")", "（", "）", "⑴", "ﷺ", "ﬁ"),
    *("\n", "\r", "\r\n", "\u2028", "\x85", "\u0301", "\u0316", "\u0301" * 9),
)
_LABELS: Final = st.sampled_from([Labels(), Labels(user="Système"), Labels(user="Йот", system="한글")])


def _reads_as_label(text: str, labels: Labels) -> bool:
    """The definition, without any bound on what is looked at in one go."""
    begins = guard._guard(labels).begins.match
    readings = (text, unicodedata.normalize("NFKC", text))
    return any(begins(line) for reading in readings for line in reading.casefold().splitlines())


@given(
    st.lists(st.sampled_from(_PARTS), max_size=14).map("".join),
    _LABELS,
    st.sampled_from([1, 2, 3, 8, 40, 128]),
    st.sampled_from([1, 5, 50, 1 << 16]),
)
def test_a_text_is_guarded_as_if_it_was_looked_at_in_one_go(text: str, labels: Labels, piece: int, window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "_SLICE", piece)
        patch.setattr(guard, "_WINDOW", window)
        guard._guard.cache_clear()
        try:
            assert needs_guard(text, labels) == _reads_as_label(text, labels)
            expected = "".join(f"> {line}" for line in text.splitlines(keepends=True))
            assert guarded(text, labels) == (expected if needs_guard(text, labels) else text)
            assert unguarded(guarded(text, labels)) == text
        finally:
            guard._guard.cache_clear()


@pytest.mark.parametrize("filler", [" " * 10_000, "\u200b" * 10_000, "# " * 5_000])
@pytest.mark.parametrize(
    "label", ["User:", "User" + " " * 10_000 + ":", "User (" + "x" * 10_000 + ") :", "Use\u0072："]
)
def test_a_label_is_found_however_far_in_its_line_it_stands(filler: str, label: str) -> None:
    assert needs_guard(filler + label + "x" * 10_000, Labels())
    assert not needs_guard(filler + "x" + label, Labels())


@pytest.mark.full
def test_quoting_many_lines_needs_little_memory() -> None:
    body = "\n" * 1_000_000 + "User: x"
    tracemalloc.start()
    try:
        guarded(body, Labels())
        assert tracemalloc.get_traced_memory()[1] < 10 * len(body)
    finally:
        tracemalloc.stop()


def test_configured_labels_are_guarded_in_any_case() -> None:
    labels = Labels(user="Reisender", tool_result="C++")
    for line in ("reisender: x", "REISENDER : x", "c++ (id): x"):
        assert needs_guard(f"a\n{line}", labels)
    assert not needs_guard("a\nreisender: x", Labels())


@pytest.mark.parametrize("line", ["Tool result (call_1", "tool result(call_1) is this", "# TOOL RESULT ("])
@pytest.mark.parametrize("before", ["", "a\n"])
def test_a_result_is_a_label_from_its_bracket_on(before: str, line: str) -> None:
    """Its colon may be missing, as where a text was cut off."""
    assert needs_guard(before + line, Labels())
    assert needs_guard(before + line + "x" * 1000, Labels())


@pytest.mark.parametrize("body", ["User: x\n", "User: x\r", "> ", "> \n", "\nUser: x", "a\u2028> b\u2029"])
def test_guarding_has_an_inverse(body: str) -> None:
    assert guarded(body, Labels()) != body
    assert unguarded(guarded(body, Labels())) == body


@pytest.mark.parametrize(
    "word", ["call_1", "a.b-c:d/e", "查看", "x):y", "(", "a b", "", '"x"', "\n", "\u2028", "a\u00a0b"]
)
def test_words_have_an_inverse(word: str) -> None:
    assert untoken(token(word)) == word
    assert token(word).isprintable()


@pytest.mark.parametrize(
    "labels",
    [
        {"user": ""},
        {"user": "User:"},
        {"user": " User"},
        {"user": "# User"},
        {"user": "> User"},
        {"user": "Us\ner"},
        {"user": "Us\u2028er"},
        {"tool_result": "Result (x)"},
        {"user": "assistant"},
    ],
)
def test_labels_that_cannot_be_told_apart_are_refused(labels: dict[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(labels, Labels)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "\u2028"])
def test_a_label_is_found_however_far_down_it_stands(line_end: str) -> None:
    filler = line_end * 70_000 + "x" * 70_000 + line_end
    assert not needs_guard(filler * 2 + "x", Labels())
    assert needs_guard(filler * 2 + "User: x", Labels())
