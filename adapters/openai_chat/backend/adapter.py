"""Serves any backend with an OpenAI-compatible `/chat/completions`, including provider-specific fields."""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from adapters.openai_chat import DIALECT
from adapters.openai_chat.backend.canonical import CARRIED
from adapters.openai_chat.backend.decoder import ChatDecoder
from adapters.openai_chat.backend.encode import encode_body
from adapters.openai_chat.backend.failure import decode_failure
from adapters.openai_chat.backend.token_counter import COUNTERS, CounterName
from adapters.openai_chat.table import EVENT_FIELDS, GENERATE_PATH, MODELS_PATH, TABLE
from gateway.adapter import BackendModel, BackendRequest, Capabilities
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import BackendError
from gateway.core.policy import Policy
from gateway.framing.json_text import decode_json
from gateway.wires.listed_models import OPENAI_PLACES, models_in_list

_ACCEPTS: Final = ("text/event-stream", "application/json")
_HEADERS: Final = {
    stream: {"content-type": "application/json", "accept": accept}
    for stream, accept in zip((True, False), _ACCEPTS, strict=True)
}


class OpenAIChatOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The adapter's keys in a backend entry. `path` is joined to the entry's base_url. `counter`: how the backend
    counts the tokens of a request; None: it does not."""

    path: str = GENERATE_PATH
    counter: CounterName | None = None


class OpenAIChatAdapter:
    """Forwards every field of a chat completions request, known or unknown, and of any other request the fields that
    the API publishes. It requests a stream exactly when the client requested one."""

    Options: ClassVar[type[msgspec.Struct]] = OpenAIChatOptions
    provider: ClassVar[str] = "openai"
    models_path: ClassVar[str | None] = MODELS_PATH
    models_headers: ClassVar[Mapping[str, str]] = {}
    capabilities = Capabilities(
        event_fields=EVENT_FIELDS,
        passthrough=DIALECT,
        request_rules=True,
        supported_params=TABLE.supported,
        carries=CARRIED,
        tools=True,
        images=True,
        native=True,
    )

    def __init__(self, options: OpenAIChatOptions, max_event: int) -> None:
        self._path = options.path
        self._counter = None if options.counter is None else COUNTERS[options.counter]
        self.counts = self._counter is not None
        self._max_event = max_event

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """Encodes the client's request with the backend's model name and the prepared messages."""
        body, notices = encode_body(conversation, policy)
        return BackendRequest(self._path, _HEADERS[conversation.stream], body, accepts=_ACCEPTS, notices=notices)

    def decoder(self, conversation: Conversation) -> ChatDecoder:
        """Creates a decoder for a stream or for one JSON response. The form of the response decides, not the form of
        the request."""
        return ChatDecoder(
            self._max_event,
            len(conversation.turns),
            conversation.sampling.stop,
            passes=conversation.dialect == DIALECT,
            keeps=conversation.keeps,
            finish_optional=conversation.finish_optional,
        )

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """Returns the backend's own message, code and param where the client can act on them."""
        return decode_failure(status, headers, body)

    def count_request(self, request: BackendRequest) -> BackendRequest:
        """Returns the request to the counter that the entry names."""
        assert self._counter is not None, "nothing is asked of an entry that names none"
        return self._counter.request(request)

    def decode_count(self, body: bytes) -> int:
        """Returns the number in the answer of this counter. Raises BackendProtocolError."""
        assert self._counter is not None, "nothing is asked of an entry that names none"
        return self._counter.decode(body)

    def decode_models(self, body: bytes) -> tuple[BackendModel, ...]:
        """Returns the models in the list. Raises BackendProtocolError."""
        return models_in_list(body, "data", "id", OPENAI_PLACES)

    def describe(self, body: bytes) -> Json:
        """Returns the request body as JSON."""
        return decode_json(body)
