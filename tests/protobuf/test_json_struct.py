import math
import sys

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from adapters.warp import multi_agent_pb2 as pb
from gateway.core.conversation import Json, JsonObject
from gateway.protobuf.json_struct import MAX_DEPTH, NestedTooDeep, write_struct

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def written(value: JsonObject) -> tuple[Struct, int]:
    target = Struct()
    return target, write_struct(target, value)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4))
def test_what_is_written_is_what_is_read(value: dict[str, Json]) -> None:
    target, inexact = written(value)
    assert MessageToDict(target) == value
    assert inexact == 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 + 1, float(2**53)),
        (-(10**400), -sys.float_info.max),
        (10**400, sys.float_info.max),
        (math.inf, sys.float_info.max),
        (-math.inf, -sys.float_info.max),
    ],
)
def test_a_number_that_no_double_holds_becomes_the_nearest_and_is_counted(value: float, expected: float) -> None:
    target, inexact = written({"n": value, "exact": 2**53})
    assert (target.fields["n"].number_value, inexact) == (expected, 1)


def test_what_is_no_number_becomes_null_and_is_counted() -> None:
    target, inexact = written({"n": math.nan})
    assert (target.fields["n"].WhichOneof("kind"), inexact) == ("null_value", 1)


def test_empty_containers_are_there() -> None:
    target, _ = written({"o": {}, "l": []})
    assert MessageToDict(target) == {"o": {}, "l": []}


def nested(levels: int) -> JsonObject:
    value: dict[str, Json] = {"end": 1}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


def test_what_is_written_can_be_read_by_a_parser_with_the_usual_limit() -> None:
    schema = pb.Request()
    write_struct(schema.mcp_context.servers.add().tools.add().input_schema, nested(MAX_DEPTH))
    arguments = pb.Request()
    call = arguments.task_context.tasks.add().messages.add().tool_call.call_mcp_tool
    write_struct(call.args, nested(MAX_DEPTH))
    for request in (schema, arguments):
        assert pb.Request.FromString(request.SerializeToString()) == request


@pytest.mark.parametrize("value", [nested(MAX_DEPTH + 1), nested(100_000)])
def test_one_level_more_is_refused_before_it_overflows_a_stack(value: JsonObject) -> None:
    with pytest.raises(NestedTooDeep):
        written(value)


def test_lists_count_as_levels() -> None:
    value: Json = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    with pytest.raises(NestedTooDeep):
        written({"l": value})
