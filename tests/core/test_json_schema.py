"""Tests the match of a value and a schema, for the keywords of structured outputs, with bounded work."""

import pytest

from gateway.core.conversation import Json
from gateway.core.json_schema import fits

POINT: dict[str, Json] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "tag": {"enum": ["a", 1]}},
    "required": ["x"],
    "additionalProperties": False,
}
NODE: Json = {"$ref": "#/$defs/node"}
NEXT: Json = {"anyOf": [NODE, {"type": "null"}]}
TREE: Json = {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"next": NEXT}}}}
CASES: list[tuple[Json, list[Json], list[Json]]] = [
    (POINT, [{"x": 1}, {"x": 1.0, "tag": "a"}, {"x": 0, "tag": 1}], [{}, {"x": "1"}, {"x": True}, {"x": 1.5}, []]),
    (POINT, [], [{"x": 1, "y": 2}, {"x": 1, "tag": "b"}, {"x": 1, "tag": True}, None, 5]),
    ({"type": ["string", "null"]}, ["", None], [0, [], False]),
    ({"type": "array", "items": {"type": "number"}, "maxItems": 2}, [[], [1, 2.5]], [[1, 2, 3], ["1"], [True]]),
    ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [["a", 1], [1]]),
    ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2.9, "x"], [0, 3]),
    ({"minLength": 2, "maxLength": 3}, ["ab", 1], ["a", "abcd"]),
    ({"const": {"a": [1]}}, [{"a": [1.0]}], [{"a": [True]}, {"a": []}]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, [1, 5.5], [5, 1.5]),
    ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1, "b": 2}], [{"a": 1}, {}]),
    (TREE, [{"next": {"next": None}}], [{"next": {"next": 5}}, 5]),
    ({"patternProperties": {"^x_": {}}, "additionalProperties": False}, [{"x_a": 1}, {}], []),
    ({**POINT, "patternProperties": {"^x_": {}}}, [{"x": 1, "x_a": 1}], [{"x": "1"}, {"x_a": 1}]),
    (True, [1, None], []),
    (False, [], [1, None]),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), CASES)
def test_a_value_fits_or_does_not(schema: Json, right: list[Json], wrong: list[Json]) -> None:
    assert [value for value in right if not fits(value, schema)] == []
    assert [value for value in wrong if fits(value, schema)] == []


def test_endless_and_dense_references_end() -> None:
    assert not fits({}, {"$ref": "#"})
    assert fits([1] * 10, {"items": {"enum": [1] * 1000}})
    assert not fits([1] * 1000, {"items": {"enum": [1] * 1000}})
    dense: dict[str, Json] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(60)
    }
    assert not fits({}, {"$ref": "#/$defs/d0", "$defs": dense})


LONG: Json = "x" * 200_000
WIDE: Json = [[] for _ in range(5000)]


@pytest.mark.parametrize(
    ("value", "again"),
    [
        (LONG, {"const": LONG}),
        (WIDE, {"const": WIDE}),
        ({"a": WIDE}, {"enum": [{"a": WIDE}]}),
        ({"k" * 200_000: 1}, {"const": {"k" * 200_000: 1}}),
        (1, {"$ref": "#/$defs/" + "y" * 200_000}),
    ],
    ids=["text", "list", "object", "key", "reference"],
)
def test_what_takes_long_to_compare_is_not_compared_without_end(value: Json, again: Json) -> None:
    assert fits(value, again)
    often: Json = {"allOf": [{"$ref": "#/$defs/again"}] * 1000, "$defs": {"again": again}}
    assert not fits(value, often)
