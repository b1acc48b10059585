import json
import math

import pytest
from google.protobuf.struct_pb2 import Struct, Value
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import InvalidToolCall
from gateway.protobuf.arguments import encode_arguments
from gateway.protobuf.tool_schema import Schema, Steps
from tests.adapters.warp.backend.script import struct

BIG = 2**53
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "maybe": {"type": ["integer", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/id"}]},
        "nested": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        "pair": {"prefixItems": [{"type": "number"}, {"type": "integer"}], "items": {"type": "number"}},
        "old": {"items": [{"type": "integer"}], "additionalItems": {"type": "number"}},
        "far": {"$ref": "https://elsewhere/schema.json"},
        "all": {"allOf": [{"minimum": 1}, {"oneOf": [{"type": "integer"}]}]},
    },
    "additionalProperties": {"type": "number"},
    "$defs": {
        "id": {"type": "integer"},
        "node": {"properties": {"n": {"$ref": "#/$defs/id"}, "below": {"$ref": "#/$defs/node"}, "top": {"$ref": "#"}}},
    },
}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"count": 5}, '{"count":5}'),
        ({"count": -5}, '{"count":-5}'),
        ({"ratio": 1.5}, '{"ratio":1.5}'),
        ({"ratio": 2.0}, '{"ratio":2}'),
        ({"count": 1.5}, '{"count":1.5}'),
        ({"nested": [{"n": 1}, {"n": 2, "below": {"n": 3}}]}, '{"nested":[{"n":1},{"n":2,"below":{"n":3}}]}'),
        ({"maybe": None}, '{"maybe":null}'),
        ({"s": "5", "t": "5.0"}, '{"s":"5","t":"5.0"}'),
        ({"b": True, "c": False}, '{"b":true,"c":false}'),
        ({"ratio": -0.0}, '{"ratio":-0.0}'),
        ({"empty": {}, "list": []}, '{"empty":{},"list":[]}'),
        ({"é": "日本\u2028\x00"}, '{"é":"日本\u2028\\u0000"}'),
        ({}, "{}"),
    ],
)
@pytest.mark.parametrize("schema", [SCHEMA, EMPTY])
def test_whole_numbers_stay_whole_and_the_rest_stays_what_it_is(
    args: JsonObject, text: str, schema: JsonObject
) -> None:
    encoded = encode_arguments(struct(args), Schema(schema, Steps()))
    assert (json.loads(encoded.text), encoded.inexact) == (json.loads(text), 0)
    if schema:
        assert encoded.text == text


@pytest.mark.parametrize(
    ("args", "text", "inexact"),
    [
        ({"count": BIG}, '{"count":9007199254740992}', 1),
        ({"count": BIG - 1}, '{"count":9007199254740991}', 0),
        ({"count": 2.0**70}, '{"count":1180591620717411303424}', 1),
        ({"maybe": BIG}, '{"maybe":9007199254740992}', 1),
        ({"either": BIG}, '{"either":9007199254740992}', 1),
        ({"all": 2.0**70}, '{"all":1180591620717411303424}', 1),
        ({"nested": [{"n": 2.0**70}]}, '{"nested":[{"n":1180591620717411303424}]}', 1),
        ({"nested": [{"top": {"count": 2.0**70}}]}, '{"nested":[{"top":{"count":1180591620717411303424}}]}', 1),
        ({"ratio": 2.0**70}, '{"ratio":1.1805916207174113e+21}', 0),
        ({"other": 2.0**70}, '{"other":1.1805916207174113e+21}', 0),
        (
            {"pair": [2.0**70, 2.0**70, 2.0**70]},
            '{"pair":[1.1805916207174113e+21,1180591620717411303424,1.1805916207174113e+21]}',
            1,
        ),
        ({"old": [2.0**70, 2.0**70]}, '{"old":[1180591620717411303424,1.1805916207174113e+21]}', 1),
        ({"far": 2.0**60}, '{"far":1152921504606846976}', 1),
        ({"far": 2.0**70}, '{"far":1.1805916207174113e+21}', 1),
    ],
)
def test_a_large_number_is_what_the_tools_schema_says(args: JsonObject, text: str, inexact: int) -> None:
    encoded = encode_arguments(struct(args), Schema(SCHEMA, Steps()))
    assert (encoded.text, encoded.inexact) == (text, inexact)


def test_keys_stand_in_the_order_of_the_schema_and_else_of_their_names() -> None:
    args = {"z": 1, "ratio": 1, "a": 1, "count": 1}
    assert encode_arguments(struct(args), Schema(SCHEMA, Steps())).text == '{"count":1,"ratio":1,"a":1,"z":1}'
    assert encode_arguments(struct(args), Schema(EMPTY, Steps())).text == '{"a":1,"count":1,"ratio":1,"z":1}'


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_cannot_say_is_an_invalid_call(number: float) -> None:
    with pytest.raises(InvalidToolCall):
        encode_arguments(Struct(fields={"n": Value(number_value=number)}), Schema(EMPTY, Steps()))


def test_a_value_without_a_kind_is_null() -> None:
    assert encode_arguments(Struct(fields={"n": Value()}), Schema(EMPTY, Steps())).text == '{"n":null}'


LOOP: JsonObject = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#"}]}}}


@pytest.mark.parametrize(
    "schema",
    [
        LOOP,
        {"$ref": "#"},
        {"$ref": "#anchor"},
        {"$ref": "#/nowhere/0/x"},
        {"$ref": 7, "anyOf": 3, "properties": [], "additionalProperties": True, "type": {"a": 1}},
        {"properties": {"n": True, "o": None}, "items": 5},
        {"anyOf": [None, True, 3, {"type": [1, None, "integer"]}]},
        {"$ref": "#/%24defs/a~1b", "$defs": {"a/b": {"properties": {"n": {"type": "integer"}}}}},
        {"$ref": "#/anyOf/0", "anyOf": [{"properties": {"n": {"type": "integer"}}}]},
        {"$ref": "#/anyOf/" + "9" * 30, "anyOf": [{}]},
    ],
)
def test_no_schema_is_too_strange(schema: JsonObject) -> None:
    assert json.loads(encode_arguments(struct({"n": 5, "o": [1, {"p": 2}]}), Schema(schema, Steps())).text) == {
        "n": 5,
        "o": [1, {"p": 2}],
    }


def test_a_pointer_is_unescaped() -> None:
    schema: JsonObject = {"$ref": "#/%24defs/a~1b", "$defs": {"a/b": {"properties": {"n": {"type": "integer"}}}}}
    assert encode_arguments(struct({"n": 2.0**70}), Schema(schema, Steps())).text == '{"n":1180591620717411303424}'


VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(1 - BIG, BIG - 1) | st.floats(-1e300, 1e300) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(args=st.dictionaries(st.sampled_from([*SCHEMA["properties"], "x"]), VALUES, max_size=4))  # type: ignore[misc] # an object
def test_the_text_says_what_the_struct_said(args: dict[str, Json]) -> None:
    said = json.loads(encode_arguments(struct(args), Schema(SCHEMA, Steps())).text)
    assert said == json.loads(json.dumps(args))


def _dense(n: int) -> dict[str, Json]:
    definitions: dict[str, Json] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{(2 * i + 1) % n}"}, {"$ref": f"#/$defs/d{(2 * i + 2) % n}"}]}
        for i in range(n)
    }
    return {"properties": {"z": {"type": "integer"}, "l": {"items": {"$ref": "#/$defs/d0"}}}, "$defs": definitions}


def test_a_place_of_a_schema_is_worked_out_once_for_all_values() -> None:
    spent = []
    for many in (10, 10_000):
        steps = Steps()
        encode_arguments(struct({"l": [{"a": 1}] * many}), Schema(_dense(50), steps))
        spent.append(steps.left)
    assert spent[0] == spent[1] > 0


def test_references_are_followed_up_to_a_bound() -> None:
    steps = Steps(1_000)
    encoded = encode_arguments(struct({"l": [1, 2.0**60], "z": 2.0**70}), Schema(_dense(2_000), steps))
    assert json.loads(encoded.text) == {"z": 2**70, "l": [1, 2**60]}
    assert steps.exhausted
