"""Converts a tool call of the wire into the start, arguments and end of a call that the client can answer.

The client's own tools travel in a wrapper tool (`call_mcp_tool`), which is forwarded wrapped, because other wires need
the unwrapping as well. A call of the wire's native tools reaches the client only if the client declares the tool.
"""

import json
from collections.abc import Iterable
from typing import Final

from google.protobuf import json_format

from adapters.warp.backend.decode.output import Output, unknown_numbers
from adapters.warp.backend.options import WarpOptions
from adapters.warp.backend.provider_state import MessageState
from adapters.warp.multi_agent_pb2 import Message
from gateway.core.conversation import EMPTY, Conversation, JsonObject
from gateway.core.errors import InvalidToolCall
from gateway.core.events import ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.protobuf.arguments import encode_arguments
from gateway.protobuf.tool_schema import Schema, Steps
from gateway.wires.call_ids import CallIds

WRAPPER_TOOL: Final = "call_mcp_tool"
SERVER: Final = "server"


class CallWriter:
    """Writes calls into the output, each with an id that is unique in the conversation.

    `written` and `dropped` count the calls that the client was sent and those that it was not.
    """

    def __init__(
        self, options: WarpOptions, conversation: Conversation, provider_state: MessageState, output: Output
    ) -> None:
        self.written = 0
        self.dropped = 0
        self._options = options
        self._provider_state = provider_state
        self._parameters = {tool.name: tool.parameters for tool in conversation.tools}
        self._steps = Steps()
        self._schemas: dict[str, Schema] = {}
        called = (call.id for turn in conversation.turns for call in turn.calls)
        self._ids = CallIds(len(conversation.turns), called)
        self._output = output

    def write(self, message: Message) -> None:
        """Emits one call, or a notice with the reason for dropping it. Raises InvalidToolCall for arguments that JSON
        text cannot represent, and for a call without a tool that a newer schema does not explain either."""
        variant = message.tool_call.WhichOneof("tool")
        if variant == WRAPPER_TOOL:
            self._wrapped_call(message)
        elif variant == SERVER:
            return
        elif variant is not None and self._is_exposed(message, variant):
            self._native(message, variant)
        elif variant is None and not unknown_numbers(message.tool_call):
            raise InvalidToolCall("The backend sent a tool call without a tool.")
        else:
            self.drop(variant)

    def drop(self, variant: str | None, why: str = "is a tool of the backend's own client") -> None:
        """Counts a call that the client cannot answer, and adds a notice."""
        self.dropped += 1
        name = variant or "an unknown tool"
        self._output.note("dropped", "NATIVE_CALL_DROPPED", f"a call of {name} was dropped: it {why}")

    def _wrapped_call(self, message: Message) -> None:
        call = message.tool_call.call_mcp_tool
        arguments = encode_arguments(call.args, self._schema(call.name))
        name = json.dumps(call.name, ensure_ascii=False)
        call_id = self._emit(message, WRAPPER_TOOL, f'{{"name":{name},"args":{arguments.text}}}', wrapped=True)
        if arguments.inexact:
            detail = f"{arguments.inexact} numbers of a call may have lost digits: the wire carries doubles"
            self._output.note("changed", "NUMBER_INEXACT", detail, tool_call_id=call_id)
        if self._steps.exhausted:
            detail = (
                "the schema of a tool has too many references to follow; some keys and numbers are written without it"
            )
            self._output.note_once("seen", "SCHEMA_NOT_FOLLOWED", detail)

    def _schema(self, name: str) -> Schema:
        """Returns the tool's schema, parsed once for all of its calls. Undeclared tools get an empty schema."""
        declared = name if name in self._parameters else ""
        if declared not in self._schemas:
            self._schemas[declared] = Schema(self._parameters.get(declared, EMPTY), self._steps)
        return self._schemas[declared]

    def _native(self, message: Message, variant: str) -> None:
        """Emits a call with the arguments that the client's tool declares, and with the first field of the wire's tool,
        which it cannot do without."""
        call = getattr(message.tool_call, variant)
        arguments = json_format.MessageToDict(call, preserving_proto_field_name=True)
        declared = {call.DESCRIPTOR.fields[0].name, *_properties(self._parameters[variant])}
        if undeclared := ", ".join(sorted(arguments.keys() - declared)):
            detail = f"the client's tool {variant} does not declare {undeclared}"
            self._output.note_once("ignored", "FIELD_NOT_SHOWN", detail, level="debug")
        known = {name: value for name, value in arguments.items() if name in declared}
        self._emit(message, variant, json.dumps(known, ensure_ascii=False, separators=(",", ":")), wrapped=False)

    def _is_exposed(self, message: Message, variant: str) -> bool:
        """Returns whether a call of a native tool is forwarded. A call whose fields the schema does not define is not,
        because its arguments would have to be invented."""
        describe = bool(getattr(message.tool_call, variant).DESCRIPTOR.fields)
        return describe and self._options.native_tools == "expose" and variant in self._parameters

    def _emit(self, message: Message, name: str, arguments: str, *, wrapped: bool) -> str:
        index = self.written
        self.written += 1
        call_id, told = self._ids.take(message.tool_call.tool_call_id, index)
        self._output.events += told
        self._output.events += (
            ToolCallStart(index, call_id, name, wrapped, self._provider_state.extra(message)),
            ToolCallDelta(index, arguments),
            ToolCallEnd(index),
        )
        return call_id


def _properties(parameters: JsonObject | None) -> Iterable[str]:
    properties = parameters.get("properties") if parameters else None
    return properties if isinstance(properties, dict) else ()
