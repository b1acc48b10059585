"""The Warp multi-agent wire: a conversation out as one protobuf message, server-sent protobuf events in."""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec
from google.protobuf.internal import api_implementation

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.decode import WarpDecoder
from adapters.warp.encode import encode_request
from adapters.warp.error_body import decode_error
from adapters.warp.options import WarpOptions
from gateway.adapter import BackendRequest, Capabilities
from gateway.errors import BackendError, SettingsError
from gateway.policy import Policy
from gateway.types import Conversation, Json

_SLOW: Final = (
    "the Warp wire needs protobuf's compiled parser, and this one is in pure Python: install protobuf as a wheel for "
    "this machine, and leave PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION unset"
)


class WarpAdapter:
    """`encoding: flatten` tells the conversation as text, `structured` as the wire's own task log."""

    Options: ClassVar[type[msgspec.Struct]] = WarpOptions

    def __init__(self, options: WarpOptions, max_event: int) -> None:
        """Raises SettingsError where protobuf has only its slow parser: one hostile event of a megabyte holds it up."""
        if api_implementation.Type() == "python":
            raise SettingsError(_SLOW)
        self._options = options
        self._max_event = max_event
        self.capabilities = Capabilities(
            honours=frozenset({"parallel_tool_calls"}),
            images=True,
            flattens=options.encoding == "flatten",
        )

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """One serialized Request. Raises InvalidRequest, Unsupported among it, for what cannot be said."""
        return encode_request(conversation, policy, self._options)

    def decoder(self, conversation: Conversation) -> WarpDecoder:
        """A decoder that types the arguments of calls by this conversation's tools."""
        return WarpDecoder(self._options, conversation, self._max_event)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """An answer other than 200 as the error the client shall see."""
        return decode_error(status, headers, body)

    def readable(self, body: bytes) -> Json:
        """The protobuf message with the names of its fields."""
        from google.protobuf.json_format import MessageToDict

        message: dict[str, Json] = MessageToDict(pb.Request.FromString(body), preserving_proto_field_name=True)
        return message
