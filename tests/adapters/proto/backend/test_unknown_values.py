"""What the schema lacks is found at any depth, by path and number, within bounds."""

from typing import Any

import pytest

from adapters.proto.backend.schema import message_class
from adapters.proto.backend.unknown_values import unknown_values
from tests.adapters.proto.backend.services import METHODS
from tests.adapters.proto.backend.test_status_details import field


@pytest.mark.parametrize(
    ("service", "wire", "part", "path", "number"),
    [
        ("talk", field(9, 77), "value 77", "Said.ending", 77),
        ("talk", field(40, b"x"), "field 40", "Said", 40),
        ("talk", field(1, field(9, 1)), "field 9", "Said.failure", 9),
        ("deltas", field(1, b"") + field(1, field(4, field(8, b""))), "field 8", "Delta.outputs.calls", 8),
    ],
)
def test_a_part_that_the_schema_lacks_is_told_by_path_and_number(
    service: str, wire: bytes, part: str, path: str, number: int
) -> None:
    message: Any = message_class(METHODS[service].response).FromString(wire)
    (notice,) = unknown_values(message)
    assert notice.detail == f"the schema does not know {part} of {path}, which the backend sent"
    assert notice.unknown and (notice.unknown.path, notice.unknown.number) == (path, number)


def test_many_of_them_are_cut() -> None:
    wire = b"".join(field(number, b"") for number in range(100, 200))
    message: Any = message_class(METHODS["talk"].response).FromString(wire)
    assert len(unknown_values(message)) == 16
