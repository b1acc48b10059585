"""What two sequences of texts have in common."""

from difflib import SequenceMatcher
from typing import Final

import pytest

from gateway.core.conversation import Text, Turn
from gateway.inspector.views.diff import _blocks, _spans
from gateway.inspector.views.matches import blocks_of

COUNT: Final = 1500


class Hashed(str):
    """A text that counts how often texts are looked up."""

    __slots__ = ()
    times = 0

    def __hash__(self) -> int:
        Hashed.times += 1
        return super().__hash__()


def sequence(other: str) -> list[str]:
    return [Hashed(text) for number in range(COUNT) for text in (f"same {number}", f"{other} {number}")]


def test_long_sequences_take_work_in_proportion_to_their_length() -> None:
    Hashed.times = 0
    assert [op for op, *_ in blocks_of(sequence("old"), sequence("new"))] == ["equal", "replace"] * COUNT
    assert Hashed.times < 20 * 2 * COUNT


def test_long_sequences_without_a_text_that_stands_once_are_replaced_as_a_whole() -> None:
    old, new = ["a", "b"] * COUNT, ["b", "a", "c"] * COUNT
    assert [*blocks_of(old, new)] == [("replace", 0, 2 * COUNT, 0, 3 * COUNT)]


def test_messages_and_words_are_compared_so(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def search(junk: None, old: list[str], new: list[str], *, autojunk: bool) -> SequenceMatcher[str]:
        searched.append(len(old))
        return SequenceMatcher(junk, old, new, autojunk)

    monkeypatch.setattr("gateway.inspector.views.matches.SequenceMatcher", search)

    def turns(other: str) -> list[Turn]:
        return [Turn("user", (Text(text),)) for text in sequence(other)]

    assert len(_blocks(turns("old"), turns("new"))) == 2 * COUNT
    was, now = (" ".join(f"same{number} {other}{number}" for number in range(COUNT)) for other in ("old", "new"))
    spans = [*_spans(was, now)]
    assert sum(span.op == "+" for span in spans) == COUNT and max(searched) <= 500
    for op, text in (("-", was), ("+", now)):
        assert "".join(span.text for span in spans if span.op in ("=", op)) == text
