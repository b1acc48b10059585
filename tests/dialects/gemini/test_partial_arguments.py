"""The pieces of one call: what they hold is bounded, and costs no more than they are long."""

from typing import Any

import pytest

from gateway.core.conversation import Json
from gateway.dialects.gemini.partial_arguments import BrokenPiece, PartialArguments
from gateway.framing.json_text import MAX_DEPTH


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
