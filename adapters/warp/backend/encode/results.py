"""Encodes tool results and tool calls of a conversation as the Warp wire's own messages."""

import base64
from typing import Final
from urllib.parse import quote

import msgspec

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.indexed_turn import IndexedTurn
from adapters.warp.backend.encode.tools import inexact_numbers
from adapters.warp.backend.provider_state import read_provider_state
from gateway.core.conversation import File, Image, JsonObject, Text, ToolCall, ToolResult
from gateway.core.data_url import DataUrl, held_data, read_image
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.protobuf.json_struct import NestedTooDeep, write_struct

_DECODER: Final = msgspec.json.Decoder(dict)
# The field for arguments that a Struct cannot hold because they are not a JSON object.
AS_TEXT: Final = "arguments"


def write_result(target: pb.CallMCPToolResult, result: ToolResult, indexed: IndexedTurn, position: int) -> list[Notice]:
    """Writes a failed result as an error, any other as the list of its parts. Raises InvalidRequest for an invalid
    image or file; `position` is that of the result among those of its turn."""
    if result.is_error:
        target.error.message = result.text
        return _parts_lost(result, indexed.index)
    target.success.SetInParent()
    for part, block in enumerate(result.content):
        _write_part(target.success, block, indexed.result_part(position, result, part))
    if not result.content:
        target.success.results.add().text.text = ""
    return []


def _write_part(target: pb.CallMCPToolResult.Success, block: Text | Image | File, param: str) -> None:
    match block:
        case Text(text):
            target.results.add().text.text = text
        case Image():
            held = read_image(block.url, param)
            image = target.results.add().image
            image.data, image.mime_type = held.data.encode(), held.media_type
        case File():
            _write_resource(target.results.add().resource, block, param)


def _write_resource(target: pb.MCPResourceContent, file: File, param: str) -> None:
    """Writes a file as a resource of MCP: as text where it is one, else as its base64. Raises InvalidRequest for a file
    without content."""
    held = held_data(file.url)
    if held is None:
        raise InvalidRequest(f"{param} is a {file.kind} part without a usable data: URL.", param=param)
    if file.name:
        target.uri = f"file:///{quote(file.name)}"
    text = _text_of(held)
    if text is None:
        target.binary.data, target.binary.mime_type = held.data.encode(), held.media_type
    else:
        target.text.content, target.text.mime_type = text, held.media_type


def _text_of(held: DataUrl) -> str | None:
    if not held.media_type.startswith("text/") and held.media_type != "application/json":
        return None
    try:
        return base64.b64decode(held.data).decode()
    except UnicodeDecodeError:
        return None


def _parts_lost(result: ToolResult, index: int) -> list[Notice]:
    count = sum(not isinstance(block, Text) for block in result.content)
    if not count:
        return []
    detail = f"{count} parts of a failed result are not text, and an error can contain only text"
    return [
        Notice(
            "encode",
            "dropped",
            "ERROR_PART_NOT_SENT",
            detail,
            index=index,
            tool_call_id=result.call_id,
            level="warning",
        )
    ]


def write_call(target: pb.Message.ToolCall, call: ToolCall, index: int) -> list[Notice]:
    """Writes a call of the model. Arguments that are not a JSON object, or that nest too deep, are sent as one text."""
    target.tool_call_id = call.id
    target.call_mcp_tool.name = call.name
    if server_id := read_provider_state(call.extra).server_id:
        target.call_mcp_tool.server_id = server_id
    try:
        inexact = write_struct(target.call_mcp_tool.args, _arguments(call.arguments))
    except (NestedTooDeep, msgspec.DecodeError, RecursionError):
        target.call_mcp_tool.args.Clear()
        target.call_mcp_tool.args.fields[AS_TEXT].string_value = call.arguments
        detail = (
            f"the arguments of {call.name} are not a JSON object that the wire can represent; they are sent as text"
        )
        return [
            Notice("encode", "changed", "ARGUMENTS_AS_TEXT", detail, index=index, tool_call_id=call.id, level="warning")
        ]
    return [inexact_numbers(inexact, f"the arguments of {call.name}", index, call.id)] if inexact else []


def _arguments(text: str) -> JsonObject:
    return _DECODER.decode(text) if text.strip() else {}
