"""Plain text and a schema -> JSON."""

import pytest

from gateway.core.conversation import Json
from gateway.tool_calls.parsers.declared_tools import typed, types_of


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "integer"}, {"integer"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"anyOf": [{"type": "number"}, {"oneOf": [{"type": "null"}]}]}, {"number", "null"}),
        (
            {"enum": ["a", 1, 1.5, True, None, [], {}]},
            {"string", "integer", "number", "boolean", "null", "array", "object"},
        ),
        ({"enum": [1], "type": "string"}, {"string"}),
        ({}, {"string"}),
        (True, {"string"}),
        ({"type": 5, "anyOf": [True]}, {"string"}),
    ],
)
def test_the_types_that_a_schema_allows(schema: Json, types: set[str]) -> None:
    assert types_of({"properties": {"a": schema}}, "a") == types


def test_a_parameter_without_a_schema_is_a_string() -> None:
    assert types_of({}, "a") == {"string"} == types_of({"properties": []}, "a")


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("5", {"integer", "string"}, "5"),
        ("5", {"null", "string"}, '"5"'),
        ("null", {"null", "string"}, "null"),
        ("5", {"number"}, "5"),
        ("1.50", {"number"}, "1.50"),
        ("1e5", {"number", "string"}, "1e5"),
        ("5", {"number", "string"}, "5"),
        (" [1] ", {"array"}, "[1]"),
        ('"x"', {"integer"}, '"\\"x\\""'),
        ("x y", {"object"}, '"x y"'),
        ("12345678901234567890123", {"integer"}, "12345678901234567890123"),
        ("NaN", {"number"}, '"NaN"'),
        ("", {"integer"}, '""'),
    ],
)
def test_a_text_becomes_what_its_types_allow(text: str, types: set[str], expected: str) -> None:
    assert typed(text, frozenset(types)) == expected
