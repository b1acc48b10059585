"""What a connection remembers: its own answers before those that are stored, up to a size."""

from collections.abc import Sequence
from typing import Final

import pytest

from gateway.server.state import connection_answers
from gateway.server.state.answer_store import Found
from gateway.server.state.connection_answers import ConnectionMemories

SMALL: Final = 100


class Chain:
    """Names an entry, and then the one that it refers to."""

    def __init__(self, name: str) -> None:
        self._name = name

    def missing(self, found: Found) -> Sequence[str]:
        entry = found.get(self._name)
        names = [self._name] if entry is None else [self._name, entry.decode()]
        return [name for name in names if name not in found]


async def test_entries_that_refer_to_others_are_found_and_what_is_unknown_is_none() -> None:
    memory = ConnectionMemories().open()
    memory.put([("a", b"b"), ("b", b"end")])
    answers = memory.over(None)
    assert await answers.find(Chain("a").missing) == {"a": b"b", "b": b"end"}
    assert await answers.find(Chain("x").missing) == {"x": None}


def test_the_oldest_answer_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_answers, "MOST_BYTES", SMALL)
    memory = ConnectionMemories().open()
    for name in "abc":
        memory.put([(name, b"x" * 40)])
    assert [memory.get(name) is None for name in "abc"] == [True, False, False]
    assert memory.size == 82 <= SMALL


def test_what_a_later_answer_names_as_well_is_remembered_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend of the same dialect makes the ids of its items, and may make one twice."""
    monkeypatch.setattr(connection_answers, "MOST_BYTES", SMALL)
    memory = ConnectionMemories().open()
    for name in "abc":
        memory.put([("item", name.encode()), (name, b"x" * 40)])
    assert memory.get("item") == b"c"
    memory.put([("d", b"x" * 98)])
    assert memory.get("item") is None and memory.get("d") is not None
    assert memory.size == 99


def test_one_entry_is_dropped_with_its_bytes_and_the_others_of_its_answer_stay() -> None:
    memories = ConnectionMemories()
    memory = memories.open()
    memory.put([("items", b"x" * 10), ("answer", b"y" * 20)])
    memory.drop("answer")
    memory.drop("answer")
    memory.drop("unknown")
    assert memory.get("answer") is None and memory.get("items") == b"x" * 10
    assert memory.size == memories.size == len("items") + 10
    memory.forget()
    assert memory.get("items") is None
    assert memory.size == memories.size == 0


def test_all_connections_together_are_bounded_and_the_fullest_one_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_answers, "MOST_TOGETHER", 3 * SMALL)
    memories = ConnectionMemories()
    full, small = memories.open(), memories.open()
    small.put([("s", b"x" * 10)])
    others = [memories.open() for _ in range(3)]
    for memory in (full, *others):
        for name in "ab":
            memory.put([(name, b"x" * 40)])
    assert memories.size == sum(memory.size for memory in (full, small, *others)) <= 3 * SMALL
    assert small.get("s") is not None
    for memory in (full, *others):
        memories.close(memory)
    assert memories.size == small.size
