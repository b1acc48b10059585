"""The sentences of msgspec are read in parts, whatever a type demands."""

from typing import Annotated, Any

import msgspec
import pytest

from gateway.core.errors import InvalidRequest
from gateway.core.wrong_value import WrongValue, in_words, read_wrong_value
from gateway.dialects.field_types import read_fields


class Inner(msgspec.Struct):
    needed: int


class Part(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    share: Annotated[float, msgspec.Meta(lt=1)] = 0.5
    name: Annotated[str, msgspec.Meta(pattern="^a")] = "a"
    some: Annotated[list[int], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=lambda: [1])
    inner: list[Inner] = []


CASES = [
    ({"count": "1"}, WrongValue("count", "Expected `int | null`, got `str`", expected=("int", "null"), found="str")),
    ({"count": 0}, WrongValue("count", "Expected `int` >= 1", bound=("int", ">=", "1"))),
    ({"share": 1}, WrongValue("share", "Expected `float` < 1.0", bound=("float", "<", "1.0"))),
    ({"name": "b"}, WrongValue("name", "Expected `str` matching regex '^a'", pattern="^a")),
    ({"some": []}, WrongValue("some", "Expected `array` of length >= 1")),
    ({"some": ["a"]}, WrongValue("some[0]", "Expected `int`, got `str`", expected=("int",), found="str")),
    ({"inner": [{}]}, WrongValue("inner[0]", "Object missing required field `needed`", missing="needed")),
    ([], WrongValue("", "Expected `object`, got `array`", expected=("object",), found="array")),
]


@pytest.mark.parametrize(("value", "wrong"), CASES)
def test_a_sentence_is_read_in_parts(value: Any, wrong: WrongValue) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(value, Part)
    assert read_wrong_value(raised.value) == wrong


def test_types_are_named_in_words() -> None:
    assert in_words(("array", "null")) == "an array or null"
    assert in_words(("array", "bytes"), {"array": "a list"}) == "a list or bytes"


@pytest.mark.parametrize(
    ("fields", "message", "code"),
    [
        ({"count": 0}, "count is out of range.", "invalid_value"),
        ({"share": 1.5}, "share is out of range.", "invalid_value"),
        ({"name": "b"}, "name: expected `str` matching regex '^a'.", "invalid_value"),
        ({"some": []}, "some: expected `array` of length >= 1.", "invalid_value"),
        ({"count": "1"}, "count must be a whole number; it is text.", "invalid_type"),
        ({"some": 1}, "some must be an array; it is a whole number.", "invalid_type"),
        ({"inner": [{}]}, "inner[0].needed is missing.", "missing_required_parameter"),
    ],
)
def test_a_client_reads_no_half_of_a_sentence(fields: Any, message: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_fields(fields, Part)
    assert (raised.value.message, raised.value.code) == (message, code)
