"""Implements the Warp wire: one protobuf message per request, and responses of server-sent protobuf events."""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec
from google.protobuf.internal import api_implementation

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.decode.decoder import WarpDecoder
from adapters.warp.backend.decode.error_body import decode_error
from adapters.warp.backend.encode.encoder import encode_request
from adapters.warp.backend.options import WarpOptions
from adapters.warp.backend.provider_state import CONTAINER, PROVIDER
from gateway.adapter import BackendRequest, Capabilities
from gateway.core.conversation import Conversation, Json, Role
from gateway.core.errors import BackendError, SettingsError
from gateway.core.policy import Policy
from gateway.core.state_rule import StateRule

_SLOW: Final = (
    "the Warp wire needs protobuf's compiled parser, and this one is in pure Python: install protobuf as a wheel for "
    "this machine, and leave PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION unset"
)
# A text can state where an image stood, for a message of any role; the task log has fields for images only in questions
# and results.
_IMAGE_ROLES: Final[Mapping[str, frozenset[Role]]] = {
    "flatten": frozenset({"system", "developer", "user", "assistant", "tool"}),
    "structured": frozenset({"user", "tool"}),
}
# A result may hold a resource of MCP; the wire has no field for a file of a question.
_RESULT_FILES: Final = frozenset(
    {
        "application/json",
        "application/pdf",
        "audio/mp3",
        "audio/mpeg",
        "audio/wav",
        "text/csv",
        "text/html",
        "text/markdown",
        "text/plain",
        "text/xml",
    }
)
_STATE: Final = f"{CONTAINER}.{PROVIDER}"
# Only the task log has a field for the failure of a call.
_CARRIED: Final[Mapping[str, frozenset[str]]] = {
    "flatten": frozenset({_STATE}),
    "structured": frozenset({_STATE, "is_error"}),
}


class WarpAdapter:
    """Implements the Warp wire. `encoding: flatten` sends the conversation as text, `structured` as the wire's own task
    log."""

    Options: ClassVar[type[msgspec.Struct]] = WarpOptions

    def __init__(self, options: WarpOptions, max_event: int) -> None:
        """Raises SettingsError if protobuf has only its pure-Python parser, because one hostile event of a megabyte
        would block it."""
        if api_implementation.Type() == "python":
            raise SettingsError(_SLOW)
        self._options = options
        self._max_event = max_event
        self.capabilities = Capabilities(
            supported_params=frozenset({"model", "parallel_tool_calls"}),
            prompts=frozenset(options.prompted),
            carries=_CARRIED[options.encoding],
            images=True,
            image_roles=_IMAGE_ROLES[options.encoding],
            remote_images=False,
            files=_RESULT_FILES if options.encoding == "structured" else frozenset(),
            file_roles=frozenset({"tool"}),
            system="anywhere" if options.encoding == "flatten" else "first",
            text_only=options.encoding == "flatten",
            state=StateRule(provider=PROVIDER, calls=True),
        )

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """Encodes one serialized Request. Raises InvalidRequest, including Unsupported, for content that the wire
        cannot express."""
        return encode_request(conversation, policy, self._options)

    def decoder(self, conversation: Conversation) -> WarpDecoder:
        """Creates a decoder that converts the arguments of calls to the types of this conversation's tools."""
        return WarpDecoder(self._options, conversation, self._max_event)

    def restricted_decoder(self, conversation: Conversation) -> WarpDecoder:
        """Creates a decoder that drops the calls of the wire's own tools, whatever `native_tools` is."""
        options = msgspec.structs.replace(self._options, native_tools="drop")
        return WarpDecoder(options, conversation, self._max_event)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """Converts a response with a status other than 200 into the error for the client."""
        return decode_error(status, headers, body)

    def describe(self, body: bytes) -> Json:
        """Returns the protobuf message as JSON with its field names."""
        from google.protobuf.json_format import MessageToDict

        message: dict[str, Json] = MessageToDict(pb.Request.FromString(body), preserving_proto_field_name=True)
        return message
