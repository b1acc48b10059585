"""Hostile bodies cost no more than their length, and configured labels are guarded like the built-in ones."""

import re
import unicodedata

import msgspec
import pytest

from gateway.conversation import guard
from gateway.conversation.guard import guarded, needs_guard, token, unguarded, untoken
from gateway.policy import Labels


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
    counted = _Counted(guard._guarded_line(Labels()))
    monkeypatch.setattr(guard, "_guarded_line", lambda labels: counted)
    body = beginning + unit * (20_000 // len(unit))
    assert unguarded(guarded(body, Labels())) == body
    # Once as it is and, where compatibility characters stand in it, once more as they read.
    assert counted.given <= len(body) + len(unicodedata.normalize("NFKC", body))


def test_a_label_is_never_tried_twice_at_one_place() -> None:
    """A repetition that gives back what it took would make a line of blanks cost the square of its length."""
    pattern = guard._guarded_line(Labels()).pattern
    repetitions = re.findall(r"(?<!\\)[*][+?]?", re.sub(r"\[(?:\\.|[^\]\\])*\]", "[]", pattern))
    assert set(repetitions) == {"*+", "*?"}
    assert repetitions.count("*?") == 1


def test_configured_labels_are_guarded_in_any_case() -> None:
    labels = Labels(user="Reisender", tool_result="C++")
    for line in ("reisender: x", "REISENDER : x", "c++ (id): x"):
        assert needs_guard(f"a\n{line}", labels)
    assert not needs_guard("a\nreisender: x", Labels())


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
