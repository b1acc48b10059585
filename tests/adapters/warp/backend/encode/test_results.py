import pytest

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.indexed_turn import IndexedTurn
from adapters.warp.backend.encode.results import AS_TEXT, write_call, write_result
from gateway.core.conversation import Image, Text, ToolCall, ToolResult, Turn
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.notices import Notice
from tests.adapters.warp.backend.sent import RED_DOT


def written(result: ToolResult) -> tuple[pb.CallMCPToolResult, list[Notice]]:
    target = pb.CallMCPToolResult()
    indexed = IndexedTurn(3, Turn("tool", (result,)), CANONICAL_PATHS)
    return target, write_result(target, result, indexed, 0)


def called(arguments: str) -> tuple[pb.Message.ToolCall, list[Notice]]:
    target = pb.Message.ToolCall()
    return target, write_call(target, ToolCall("k", "Execute", arguments), 3)


def test_every_part_of_a_result_is_a_part_on_the_wire() -> None:
    target, notices = written(ToolResult("k", (Text("a"), Image(RED_DOT), Text(""))))
    assert [part.WhichOneof("result") for part in target.success.results] == ["text", "image", "text"]
    assert target.success.results[1].image.data == b"iVBORw0KGgo="
    assert notices == []


def test_an_empty_result_is_a_success_with_an_empty_text() -> None:
    target, _ = written(ToolResult("k", ()))
    assert [part.text.text for part in target.success.results] == [""]


def test_a_failed_result_is_an_error() -> None:
    target, notices = written(ToolResult("k", (Text("no such"), Text("file")), is_error=True))
    assert (target.WhichOneof("result"), target.error.message) == ("error", "no such\nfile")
    assert notices == []


def test_an_image_of_a_failed_result_is_said_to_be_left_out() -> None:
    _, notices = written(ToolResult("k", (Text("no"), Image(RED_DOT)), is_error=True))
    assert [(notice.rule, notice.index, notice.tool_call_id) for notice in notices] == [("ERROR_PART_NOT_SENT", 3, "k")]


def test_arguments_are_an_object_with_their_types() -> None:
    target, notices = called('{"n": 5, "s": "5", "b": true, "x": null, "l": [{"m": 1.5}]}')
    fields = target.call_mcp_tool.args.fields
    assert fields["n"].number_value == 5
    assert fields["s"].string_value == "5"
    assert fields["b"].bool_value is True
    assert fields["x"].WhichOneof("kind") == "null_value"
    assert fields["l"].list_value.values[0].struct_value.fields["m"].number_value == 1.5
    assert notices == []


@pytest.mark.parametrize("arguments", ["", " ", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    target, notices = called(arguments)
    assert target.call_mcp_tool.HasField("args")
    assert not target.call_mcp_tool.args.fields
    assert notices == []


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "ls -la", '{"a":' * 50 + "1" + "}" * 50, "[" * 5000])
def test_arguments_that_are_no_object_the_wire_can_hold_travel_as_text(arguments: str) -> None:
    target, notices = called(arguments)
    assert dict(target.call_mcp_tool.args.fields.items()).keys() == {AS_TEXT}
    assert target.call_mcp_tool.args.fields[AS_TEXT].string_value == arguments
    assert [(notice.rule, notice.index, notice.tool_call_id) for notice in notices] == [("ARGUMENTS_AS_TEXT", 3, "k")]


def test_rounded_numbers_are_counted() -> None:
    _, notices = called('{"a": 9007199254740993, "b": [9007199254740992, 18446744073709551617]}')
    (notice,) = notices
    assert (notice.rule, notice.level) == ("NUMBER_INEXACT", "warning")
    assert "2 in the arguments of Execute" in notice.detail
    assert "9007199254740993" not in notice.detail
