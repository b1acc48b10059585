"""Any backend with an OpenAI-compatible `/chat/completions`, whatever its provider adds to it."""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from adapters.openai_chat.decoder import ChatDecoder
from adapters.openai_chat.encode import encode_body
from adapters.openai_chat.failure import decode_failure
from gateway.adapter import BackendRequest, Capabilities
from gateway.errors import BackendError
from gateway.policy import Policy
from gateway.types import Conversation, Json
from gateway.wire.json_text import decode_json

_ACCEPTS: Final = ("text/event-stream", "application/json")
_HEADERS: Final = {
    stream: {"content-type": "application/json", "accept": accept}
    for stream, accept in zip((True, False), _ACCEPTS, strict=True)
}


class OpenAIChatOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The adapter's keys of a backend entry. `path` is joined to its base_url."""

    path: str = "/chat/completions"


class OpenAIChatAdapter:
    """Passes every field on, known or not. A stream is asked for exactly when the client asked for one."""

    Options: ClassVar[type[msgspec.Struct]] = OpenAIChatOptions
    capabilities = Capabilities(passthrough=True, tools=True, images=True)

    def __init__(self, options: OpenAIChatOptions, max_event: int) -> None:
        self._path = options.path
        self._max_event = max_event

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """The client's request with the backend's model name and the prepared messages."""
        return BackendRequest(
            self._path,
            _HEADERS[conversation.stream],
            encode_body(conversation, policy.profile),
            _ACCEPTS,
        )

    def decoder(self, conversation: Conversation) -> ChatDecoder:
        """A decoder for a stream or one JSON answer: what the backend sends counts, not what it was asked for."""
        return ChatDecoder(self._max_event, len(conversation.turns))

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """The backend's own message, code and param where the client can act on them."""
        return decode_failure(status, headers, body)

    def readable(self, body: bytes) -> Json:
        """The request, which is JSON already."""
        return decode_json(body)
