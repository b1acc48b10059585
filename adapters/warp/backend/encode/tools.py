"""Encodes the client's functions as the Warp wire's tool server, and lists the tools that the backend may call."""

from collections.abc import Sequence
from typing import Final, cast

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.options import WarpOptions
from gateway.core.conversation import Conversation, JsonObject, ToolSpec
from gateway.core.errors import Unsupported
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.protobuf.json_struct import MAX_DEPTH, NestedTooDeep, write_struct

_CALLS: Final = pb.Message.ToolCall.DESCRIPTOR.fields_by_name


def _has_arguments(name: str) -> bool:
    """Returns whether the schema defines the fields of a call of this tool, so that the call can be sent to a
    client."""
    field = _CALLS.get(name)
    return field is not None and field.message_type is not None and bool(field.message_type.fields)


# Maps the wire's own tools that a client can answer by the name under which a client would declare them.
NATIVE: Final[dict[str, pb.ToolType]] = {
    name: cast("pb.ToolType", number)
    for name, number in ((name.removeprefix("TOOL_").lower(), number) for name, number in pb.ToolType.items())
    if number != pb.TOOL_CALL_MCP_TOOL and _has_arguments(name)
}
# A function without parameters takes no arguments.
NO_PARAMETERS: Final[JsonObject] = {"type": "object", "properties": {}}


def offered(conversation: Conversation) -> Sequence[ToolSpec]:
    """Returns the tools that the model may call: none when the client's `tool_choice` is `none`."""
    return () if conversation.tool_choice == "none" else conversation.tools


def supported_tools(conversation: Conversation, policy: Policy, options: WarpOptions) -> list[pb.ToolType]:
    """Returns the only tools that the backend may call. Never empty, with or without tools, because an empty list
    allows all.

    A tool of the wire itself is listed only when the client declares it and so can answer it.
    """
    allowed = [pb.TOOL_CALL_MCP_TOOL]
    if options.native_tools == "expose" and not policy.disable_warp_tools:
        allowed += [NATIVE[tool.name] for tool in offered(conversation) if tool.name in NATIVE]
    return list(dict.fromkeys(allowed))


def write_tools(target: pb.Request, conversation: Conversation, options: WarpOptions) -> list[Notice]:
    """Writes the offered tools as one tool server. Raises Unsupported for a schema that nests too deep."""
    tools = offered(conversation)
    if not tools:
        return _left_out(conversation)
    server = target.mcp_context.servers.add(name=options.server_name, id=options.server_id)
    notices = []
    for position, tool in enumerate(tools):
        written = server.tools.add(name=tool.name)
        if tool.description:
            written.description = tool.description
        notices += _write_schema(written, tool, conversation.paths.tool_schema.format(tool=position))
    return notices


def _write_schema(target: pb.MCPTool, tool: ToolSpec, param: str) -> list[Notice]:
    try:
        inexact = write_struct(target.input_schema, tool.parameters or NO_PARAMETERS)
    except NestedTooDeep as error:
        raise Unsupported(f"{param} is not supported: it nests deeper than {MAX_DEPTH} levels.", param=param) from error
    if not inexact:
        return []
    return [inexact_numbers(inexact, f"the schema of {tool.name}")]


def _left_out(conversation: Conversation) -> list[Notice]:
    if not conversation.tools:
        return []
    detail = (
        f"{len(conversation.tools)} tools are not offered, because {conversation.paths.param('tool_choice')} is none"
    )
    return [Notice("encode", "dropped", "TOOLS_NOT_OFFERED", detail, level="debug")]


def inexact_numbers(count: int, where: str, index: int | None = None, call_id: str | None = None) -> Notice:
    """Creates the notice for numbers that were rounded because the wire holds only doubles."""
    detail = f"rounded to a double, the wire's only number: {count} in {where}"
    return Notice("encode", "changed", "NUMBER_INEXACT", detail, index=index, tool_call_id=call_id, level="warning")
