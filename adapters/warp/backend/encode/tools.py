"""Encodes the client's functions as the Warp wire's tool server, and lists the tools that the backend may call."""

from collections.abc import Sequence
from typing import Final, cast

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.options import WarpOptions
from gateway.core.conversation import Conversation, JsonObject, ToolSpec, derived_of, kept
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
        try:
            inexact = _add(server, tool)
        except NestedTooDeep as error:
            param = conversation.paths.tool_schema.format(tool=position)
            message = f"{param} is not supported: it nests deeper than {MAX_DEPTH} levels."
            raise Unsupported(message, param=param) from error
        if inexact:
            notices.append(inexact_numbers(inexact, f"the schema of {tool.name}"))
    return notices


def _add(server: pb.MCPServer, tool: ToolSpec) -> int:
    """Adds a tool as the wire has it. Returns how many of its numbers were rounded. Raises NestedTooDeep."""
    if derived_of(tool) is None:
        return _write(server.tools.add(), tool)
    written, inexact = kept(tool, "warp", _written)
    server.tools.append(written)
    return inexact


def _written(tool: ToolSpec) -> tuple[pb.MCPTool, int]:
    written = pb.MCPTool()
    return written, _write(written, tool)


def _write(target: pb.MCPTool, tool: ToolSpec) -> int:
    target.name = tool.name
    if tool.description:
        target.description = tool.description
    return write_struct(target.input_schema, tool.parameters or NO_PARAMETERS)


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
