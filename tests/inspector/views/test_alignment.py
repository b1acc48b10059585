"""Which messages of the stages stand in one row."""

import msgspec
import pytest

from gateway.core.conversation import Role, Text, Turn
from gateway.inspector.views.alignment import aligned


def turn(text: str, index: int | None, role: Role = "user") -> Turn:
    return Turn(role, (Text(text),), index=index)


def rows(*stages: str) -> list[str]:
    """Aligns stages written as `0a 1b +c`: the index and the text of each message, `+` for those of the gateway."""
    made = [[turn(word[1:], None if word[0] == "+" else int(word[0])) for word in stage.split()] for stage in stages]
    return [" ".join("." if one is None else one.text for one in row) for row in aligned(made)]


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        (("0a 1b", "0a 1b"), ["a a", "b b"]),
        (("0a 1b 2c", "0a 1x 2c", "0a 2c"), ["a a a", "b x .", "c c c"]),
        (("0a 1b", "+s 0a +n 1b"), [". s", "a a", ". n", "b b"]),
        (("0a 1b", "0a 1b +n", "1b +n"), ["a a .", "b b b", ". n n"]),
        # A message that the gateway wrote otherwise is another one.
        (("0a", "0a +n", "0a +m"), ["a a a", ". . m", ". n ."]),
        # Of several messages with one index, those that say the same are the same.
        (("0a 0b", "0b 0c"), ["a c", "b b"]),
        (("0a 0b 0c", "0c"), ["a .", "b .", "c c"]),
        # What was moved stays in its row.
        (("0a 1b 2c", "0a 2c 1b"), ["a a", "b b", "c c"]),
        (("0a",), ["a"]),
        ((), []),
    ],
)
def test_the_same_message_stands_in_one_row(stages: tuple[str, ...], expected: list[str]) -> None:
    assert rows(*stages) == expected


def test_of_one_index_the_same_role_comes_before_another() -> None:
    before = [turn("a", 0, "tool"), turn("b", 0, "user")]
    after = [turn("c", 0, "user"), turn("d", 0, "tool")]
    found = aligned([before, after])
    assert [[one and one.text for one in row] for row in found] == [["a", "d"], ["b", "c"]]


def test_every_message_stands_in_one_row_and_once() -> None:
    stages = [[turn(str(at), at % 3) for at in range(size)] for size in (7, 5, 9)]
    found = aligned(stages)
    for column, stage in enumerate(stages):
        placed = [row[column] for row in found if row[column] is not None]
        assert sorted(map(id, placed)) == sorted(map(id, stage))
    assert all(msgspec.structs.asdict(one)["index"] == row[0].index for row in found if row[0] for one in row if one)
