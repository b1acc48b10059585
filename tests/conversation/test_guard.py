"""Hostile bodies cost no more time than their length, and configured labels are guarded like the built-in ones."""

from time import perf_counter

import msgspec
import pytest

from gateway.conversation.guard import guarded, needs_guard, token, unguarded, untoken
from gateway.policy import Labels


@pytest.mark.parametrize(
    "unit",
    ["\n", " ", "#", "user ", "user (", "\nuser", "tool result", "\n" + " " * 50, "user\t)", "> ", "\u200b", "ﷺ"],
)
def test_guarding_is_linear(unit: str) -> None:
    body = unit * (200_000 // len(unit))
    started = perf_counter()
    guarded(body, Labels())
    guarded("user (" + body, Labels())
    assert perf_counter() - started < 2


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
