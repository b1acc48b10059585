"""A tool call of the wire -> start, arguments and end of a call that the client can answer.

The client's own tools travel in an envelope (`call_mcp_tool`), which is passed on as one: opening it is not this
wire's business alone. The wire's native tools are either the client's by declaration or nobody's.
"""

import json
from collections.abc import Iterator
from typing import Final

from google.protobuf import json_format

from adapters.warp.arguments import encode_arguments
from adapters.warp.carrier import Carrier
from adapters.warp.multi_agent_pb2 import Message
from adapters.warp.options import WarpOptions
from adapters.warp.output import Output
from gateway.events import ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.types import EMPTY, Conversation

ENVELOPE: Final = "call_mcp_tool"
SERVER: Final = "server"


class CallWriter:
    """Writes calls into the output, each with an id that no other call of the conversation has.

    `written` and `dropped` count the calls that the client was given and those that it was not.
    """

    def __init__(self, options: WarpOptions, conversation: Conversation, carrier: Carrier, output: Output) -> None:
        self.written = 0
        self.dropped = 0
        self._options = options
        self._carrier = carrier
        self._parameters = {tool.name: tool.parameters for tool in conversation.tools}
        self._ids = {call.id for turn in conversation.turns for call in turn.calls}
        self._output = output

    def write(self, message: Message) -> None:
        """Emit one call or say why not. Raises InvalidToolCall for arguments that no JSON text can say."""
        variant = message.tool_call.WhichOneof("tool")
        if variant == ENVELOPE:
            self._envelope(message)
        elif variant == SERVER:
            return
        elif variant is not None and self._is_exposed(message, variant):
            self._native(message, variant)
        else:
            self.drop(variant)

    def drop(self, variant: str | None, why: str = "is a tool of the backend's own client") -> None:
        """Count a call that nobody can answer."""
        self.dropped += 1
        name = variant or "an unknown tool"
        self._output.note("dropped", "NATIVE_CALL_DROPPED", f"a call of {name} was dropped: it {why}")

    def _envelope(self, message: Message) -> None:
        call = message.tool_call.call_mcp_tool
        arguments = encode_arguments(call.args, self._parameters.get(call.name, EMPTY))
        name = json.dumps(call.name, ensure_ascii=False)
        call_id = self._emit(message, ENVELOPE, f'{{"name":{name},"args":{arguments.text}}}', enveloped=True)
        if arguments.inexact:
            detail = f"{arguments.inexact} numbers of a call may have lost digits: the wire carries doubles"
            self._output.note("changed", "NUMBER_INEXACT", detail, tool_call_id=call_id)

    def _native(self, message: Message, variant: str) -> None:
        arguments = json_format.MessageToDict(getattr(message.tool_call, variant), preserving_proto_field_name=True)
        self._emit(message, variant, json.dumps(arguments, ensure_ascii=False, separators=(",", ":")), enveloped=False)

    def _is_exposed(self, message: Message, variant: str) -> bool:
        """A call whose fields the schema does not read would have to be given away with invented arguments."""
        readable = bool(getattr(message.tool_call, variant).DESCRIPTOR.fields)
        return readable and self._options.native_tools == "expose" and variant in self._parameters

    def _emit(self, message: Message, name: str, arguments: str, *, enveloped: bool) -> str:
        index, call_id = self.written, self._unique_id(message)
        self.written += 1
        self._output.events += (
            ToolCallStart(index, call_id, name, enveloped, self._carrier.extra(message)),
            ToolCallDelta(index, arguments),
            ToolCallEnd(index),
        )
        return call_id

    def _unique_id(self, message: Message) -> str:
        """The backend's id, or one derived from it or from the message's: the same answer gets the same ids."""
        given = message.tool_call.tool_call_id
        unique = next(call_id for call_id in _candidates(given, message.id) if call_id not in self._ids)
        self._ids.add(unique)
        if unique != given:
            why = f"is taken: {given[:80]!r}" if given else "is missing"
            detail = f"a tool call got the id {unique[:80]!r} because its own {why}"
            self._output.note("changed", "CALL_ID_MADE", detail, tool_call_id=unique)
        return unique


def _candidates(call_id: str, message_id: str) -> Iterator[str]:
    base = call_id or f"call_{message_id or 0}"
    yield base
    number = 1
    while True:
        number += 1
        yield f"{base}-{number}"
