from typing import Any

import pytest

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.indexed_turn import IndexedTurn
from adapters.warp.backend.encode.results import AS_TEXT, write_call, write_result
from gateway.core.conversation import Conversation, File, Image, Text, ToolCall, ToolResult, Turn
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from tests.adapters.warp.backend.sent import ENCODINGS, RED_DOT, assistant, both, call, conversation, rules, user


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


PDF = "data:application/pdf;base64,JVBERi0="
HOLDING = [
    pytest.param(
        File("file", {}, url="data:text/plain;base64,w7w=", name="a b.txt"),
        {"uri": "file:///a%20b.txt", "text": {"content": "ü", "mime_type": "text/plain"}},
        id="text",
    ),
    pytest.param(
        File("file", {}, url="data:text/plain;charset=iso-8859-1;base64,5A=="),
        {"text": {"content": "ä", "mime_type": "text/plain"}},
        id="text of another charset",
    ),
    pytest.param(
        File("file", {}, url="data:application/json;base64,e30="),
        {"text": {"content": "{}", "mime_type": "application/json"}},
        id="json",
    ),
    pytest.param(
        File("file", {}, url=PDF, name="x.pdf"),
        {"uri": "file:///x.pdf", "binary": {"data": b"JVBERi0=", "mime_type": "application/pdf"}},
        id="base64",
    ),
    pytest.param(
        File("file", {}, url="data:text/plain;base64,/w=="),
        {"binary": {"data": b"/w==", "mime_type": "text/plain"}},
        id="no text",
    ),
]


@pytest.mark.parametrize(("file", "expected"), HOLDING)
def test_a_file_of_a_result_is_a_resource(file: File, expected: dict[str, Any]) -> None:
    target, notices = written(ToolResult("k", (Text("a"), file)))
    assert target.success.results[1].resource == pb.MCPResourceContent(**expected)
    assert notices == []


def test_a_file_without_content_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidRequest) as caught:
        written(ToolResult("k", (File("file", {}, url="https://example.com/a.pdf"),)))
    assert caught.value.param == CANONICAL_PATHS.result_part.format(turn=3, item=0, part=0)


def answered(part: Image | File) -> Conversation:
    return conversation(
        user("q"), assistant("", call("k")), Turn("tool", (ToolResult("k", (Text("a"), part)),)), tools=()
    )


def test_a_log_holds_the_files_of_results_and_a_text_does_not() -> None:
    file = File("file", {}, url=PDF)
    request, notices = both(answered(file), encoding="structured")
    (given,) = request.input.user_inputs.inputs
    parts = given.tool_call_result.call_mcp_tool.success.results
    assert ([part.WhichOneof("result") for part in parts], rules(notices)) == (["text", "resource"], [])
    placeholder = Policy(images="placeholder")
    assert "PART_NOT_SENT" in rules(both(answered(file), placeholder, encoding="flatten")[1])
    unlisted = File("file", {}, url="data:application/zip;base64,AAAA")
    assert "PART_NOT_SENT" in rules(both(answered(unlisted), placeholder, encoding="structured")[1])


def test_a_question_has_no_field_for_a_file() -> None:
    asked = conversation(Turn("user", (Text("q"), File("file", {}, url=PDF))))
    for encoding in ENCODINGS:
        with pytest.raises(Unsupported):
            both(asked, encoding=encoding)


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
