"""What msgspec says of a wrong value is told in the words of a person, and no text of it is shown."""

from typing import Annotated, Any

import msgspec
import pytest

from gateway.core.errors import SettingsError
from gateway.settings.check import read_struct
from gateway.settings.values import VariableName


class Below(msgspec.Struct, frozen=True):
    share: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.5


class Part(msgspec.Struct, frozen=True):
    needed: int
    count: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    names: tuple[str, ...] = ()
    below: Below = Below()
    flag: bool | None = None
    texts: dict[str, str] = {}
    variable: VariableName | None = None
    length: Annotated[str, msgspec.Meta(min_length=2)] = "ab"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({}, "server.needed is missing"),
        ({"needed": "CANARY"}, "server.needed must be a whole number; it is text"),
        ({"needed": None}, "server.needed must be a whole number; it is null"),
        ({"needed": 1, "count": 0}, "server.count must be a whole number of 1 or more; it is 0"),
        ({"needed": 1, "count": 10}, "server.count must be a whole number of at most 9; it is 10"),
        ({"needed": 1, "below": {"share": 1}}, "server.below.share must be a number less than 1; it is 1"),
        ({"needed": 1, "below": {"share": -0.5}}, "server.below.share must be a number greater than 0; it is -0.5"),
        ({"needed": 1, "below": []}, "server.below must be an object; it is a list"),
        ({"needed": 1, "names": ["a", 1]}, "server.names[1] must be text; it is a whole number"),
        ({"needed": 1, "names": {}}, "server.names must be a list; it is an object"),
        ({"needed": 1, "flag": "CANARY"}, "server.flag must be true or false or null; it is text"),
        ({"needed": 1, "texts": {"a": 1}}, "server.texts[...] must be text; it is a whole number"),
        (
            {"needed": 1, "variable": "sk-CANARY"},
            "server.variable must be the name of an environment variable, not its value: letters, digits and _",
        ),
        ({"needed": 1, "length": "a"}, "server.length: Expected `str` of length >= 2"),
    ],
)
def test_a_wrong_value_is_told(entry: Any, told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_struct(entry, Part, "server")
    assert raised.value.message == told
    assert "CANARY" not in raised.value.message
    if "[...]" not in told:
        assert told.startswith(raised.value.place)
