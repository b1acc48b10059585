"""Tests the schema for a constrained backend: objects are closed unless further keys are declared."""

from typing import Final

import msgspec
import pytest

from adapters.text.backend import TextAdapter, TextOptions
from gateway.core.conversation import Conversation, Json, JsonObject, Text, ToolSpec, Turn
from gateway.core.policy import Policy
from gateway.tool_calls.parsers.schema import closed

STRING: Final[dict[str, Json]] = {"type": "string"}
CITY: Final[dict[str, Json]] = {"type": "object", "properties": {"city": STRING}, "required": ["city"]}
SHUT: Final[dict[str, Json]] = {**CITY, "additionalProperties": False}

CLOSED: Final[dict[str, tuple[dict[str, Json], dict[str, Json]]]] = {
    "the object itself": (CITY, SHUT),
    "no parameters at all": (
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {}, "additionalProperties": False},
    ),
    "an object in it": (
        {"properties": {"place": CITY}},
        {"properties": {"place": SHUT}, "additionalProperties": False},
    ),
    "the items of a list": ({"items": CITY}, {"items": SHUT}),
    "a definition": ({"$ref": "#/$defs/a", "$defs": {"a": CITY}}, {"$ref": "#/$defs/a", "$defs": {"a": SHUT}}),
    "alternatives": ({"anyOf": [CITY, STRING]}, {"anyOf": [SHUT, STRING]}),
    "a property of a schema's word": (
        {"properties": {"properties": CITY}},
        {"properties": {"properties": SHUT}, "additionalProperties": False},
    ),
}

OPEN: Final[dict[str, dict[str, Json]]] = {
    "any object": {"type": "object"},
    "it says so": {**CITY, "additionalProperties": True},
    "it says which": {**CITY, "additionalProperties": STRING},
    "it says which by pattern": {**CITY, "patternProperties": {"^x": STRING}},
    "put together": {"allOf": [CITY, {"properties": {"days": STRING}}]},
    "put together by reference": {
        "$defs": {"a": CITY},
        "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": STRING}}],
    },
    "alternatives beside it": {**CITY, "anyOf": [{"properties": {"days": STRING}}, {"properties": {"weeks": STRING}}]},
    "a reference beside it": {**CITY, "$ref": "#/$defs/a", "$defs": {"a": {"properties": {"days": STRING}}}},
    "a value that looks like a schema": {"enum": [{"properties": {"a": 1}}], "default": {"properties": {}}},
}


def shut(parameters: dict[str, Json]) -> JsonObject | None:
    return closed(ToolSpec("f", parameters=parameters)).parameters


@pytest.mark.parametrize("case", CLOSED)
def test_an_object_that_lists_its_properties_is_closed(case: str) -> None:
    given, wanted = CLOSED[case]
    assert shut(given) == wanted
    assert shut(wanted) == wanted


@pytest.mark.parametrize("case", OPEN)
def test_what_may_have_further_keys_stays_open(case: str) -> None:
    assert shut(OPEN[case]) == OPEN[case]


def test_a_required_call_is_held_to_the_closed_schema() -> None:
    adapter = TextAdapter(TextOptions(), 1 << 20)
    tools = (ToolSpec("get_weather", parameters=CITY),)
    asked = Conversation((Turn("user", (Text("Hello"),)),), tools, "required", model="m")
    held = msgspec.json.decode(adapter.encode(asked, Policy()).body)["json_schema"]
    assert held["properties"]["arguments"] == SHUT
    assert "additionalProperties" not in CITY
