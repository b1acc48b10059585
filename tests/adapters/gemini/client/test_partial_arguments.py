"""The pieces of one call: what they hold is bounded, and costs no more than they are long."""

from collections.abc import Callable
from typing import Any

import pytest

from adapters.gemini.partial_arguments import BrokenPiece, PartialArguments
from gateway.core.conversation import Json
from gateway.framing.json_text import MAX_DEPTH
from tests.fuzz.counted import count_work, growth


def piece(path: str, **value: Json) -> dict[str, Json]:
    return {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}


def joined(*pieces: dict[str, Json]) -> Json:
    arguments = PartialArguments()
    for one in pieces:
        arguments.add(one)
    return arguments.arguments


def test_a_path_is_no_deeper_than_a_document() -> None:
    deepest: Any = joined(piece("$" + ".a" * MAX_DEPTH, numberValue=1))
    for _ in range(MAX_DEPTH):
        deepest = deepest["a"]
    assert deepest == 1
    for steps in (MAX_DEPTH + 1, 3000):
        for step in (".a", "[0]"):
            with pytest.raises(BrokenPiece, match="deeper than 64 levels"):
                joined(piece("$.a" + step * (steps - 1), numberValue=1))


def test_the_items_that_are_missing_are_bounded_for_the_whole_call() -> None:
    assert joined(piece("$.a[1000]", numberValue=1)) == {"a": [None] * 1000 + [1]}
    with pytest.raises(BrokenPiece, match="far behind the end of its array"):
        joined(piece("$.a[501]", numberValue=1), piece("$.b[501]", numberValue=1))
    with pytest.raises(BrokenPiece, match="far behind the end of its array"):
        joined(piece("$.a[501][501]", numberValue=1))


def test_an_item_behind_the_last_one_is_not_missing() -> None:
    assert joined(*(piece(f"$.a[{n}]", numberValue=n) for n in range(3000))) == {"a": [*range(3000)]}


def test_what_was_added_stays_as_it_was() -> None:
    """The pieces of a history are in the client's own document, which a backend of the same API gets."""
    first: dict[str, Any] = {"args": {"a": {"b": [1]}}, "willContinue": True}
    second: dict[str, Any] = piece("$.c", stringValue={"d": {}})
    assert joined(first, second, piece("$.a.b[1]", numberValue=2), piece("$.c.d.e", stringValue="x")) == {
        "a": {"b": [1, 2]},
        "c": {"d": {"e": "x"}},
    }
    assert first["args"] == {"a": {"b": [1]}} and second == piece("$.c", stringValue={"d": {}})


def test_what_was_read_stays_as_it_was() -> None:
    arguments = PartialArguments()
    arguments.add(piece("$.a.b", stringValue="x"))
    before = arguments.arguments
    arguments.add(piece("$.a.b", stringValue="y"))
    assert (before, arguments.arguments) == ({"a": {"b": "x"}}, {"a": {"b": "xy"}})


def test_a_text_may_take_the_place_of_a_value_and_a_value_that_of_a_text() -> None:
    paths = [piece("$.a", stringValue="x"), piece("$.a", stringValue="y")]
    assert joined(*paths, piece("$.a", numberValue=1), piece("$.a", stringValue="z")) == {"a": "z"}
    with pytest.raises(BrokenPiece):
        joined(*paths, piece("$.a.b", stringValue="z"))


@pytest.mark.full
@pytest.mark.parametrize(
    "pieces",
    [
        lambda size: [piece("$.a", stringValue="x" * 40)] * size,
        lambda size: [piece("$.a", stringValue="x" * 40), piece("$.b", stringValue="y" * 40)] * size,
        lambda size: [piece(f"$.a[{n}]", stringValue="x" * 40) for n in range(size)],
        lambda size: [{"args": {f"k{n}": "x" * 40}, "willContinue": True} for n in range(size)],
    ],
    ids=["one text", "two texts", "items", "members"],
)
def test_the_work_grows_with_the_pieces(pieces: Callable[[int], list[dict[str, Json]]]) -> None:
    small, large = pieces(300), pieces(3000)
    joined(*small)
    assert growth(count_work(lambda: joined(*small)), count_work(lambda: joined(*large))) < 13
