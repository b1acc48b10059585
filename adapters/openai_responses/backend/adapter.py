"""Serves any backend with an OpenAI-compatible `/responses`, including provider-specific fields."""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final

import msgspec

from adapters.openai_responses import DIALECT, PROVIDER
from adapters.openai_responses.backend.canonical import CARRIED, custom_names
from adapters.openai_responses.backend.decoder import ResponsesDecoder
from adapters.openai_responses.backend.encode import encode_body
from adapters.openai_responses.backend.event_reader import EventReader
from adapters.openai_responses.backend.failure import decode_failure
from adapters.openai_responses.backend.token_counter import count_request, decode_count
from adapters.openai_responses.table import EVENT_FIELDS, GENERATE_PATH, MODELS_PATH, TABLE
from adapters.openai_responses.tools import tool_names
from gateway.adapter import BackendModel, BackendRequest, Capabilities
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import BackendError
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.state_rule import StateRule
from gateway.framing.json_text import decode_json
from gateway.providers.cache_rules import RESPONSES_CACHE
from gateway.providers.openai import PROFILE, TOOL_RULES
from gateway.response.passthrough import Passthrough
from gateway.wires.listed_models import OPENAI_PLACES, models_in_list

_ACCEPTS: Final = ("text/event-stream", "application/json")
_HEADERS: Final = {
    stream: {"content-type": "application/json", "accept": accept}
    for stream, accept in zip((True, False), _ACCEPTS, strict=True)
}


class OpenAIResponsesOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The adapter's keys in a backend entry. `path` is joined to the entry's base_url."""

    path: str = GENERATE_PATH


class OpenAIResponsesAdapter:
    """Forwards every field and item of a Responses request, known or unknown, and of any other request the fields that
    the API publishes. It requests a stream exactly when the client requested one."""

    Options: ClassVar[type[msgspec.Struct]] = OpenAIResponsesOptions
    counts = True
    provider: ClassVar[str] = "openai"
    models_path: ClassVar[str | None] = MODELS_PATH
    models_headers: ClassVar[Mapping[str, str]] = {}
    capabilities = Capabilities(
        event_fields=EVENT_FIELDS,
        passthrough=DIALECT,
        supported_params=TABLE.supported,
        carries=CARRIED,
        images=True,
        image_roles=frozenset({"system", "developer", "user", "tool"}),
        result_media=True,
        files=frozenset({"application/pdf"}),
        remote_files=True,
        results="anywhere",
        native=True,
        passes_tools=True,
        tool_rules=TOOL_RULES,
        cache=RESPONSES_CACHE,
        compacts=(PROFILE,),
        state=StateRule(provider=PROVIDER, reasoning="signed", fields=("phase",), turns="all", scope="credential"),
    )

    def __init__(self, options: OpenAIResponsesOptions, max_event: int) -> None:
        self._path = options.path
        self._max_event = max_event

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """Encodes the client's request with the backend's model name and the prepared turns as items."""
        notices: list[Notice] = []
        body = encode_body(conversation, policy, notices)
        return BackendRequest(self._path, _HEADERS[conversation.stream], body, accepts=_ACCEPTS, notices=tuple(notices))

    def decoder(self, conversation: Conversation) -> ResponsesDecoder:
        """Creates a decoder for a stream or for one JSON response. The form of the response decides, not the form of
        the request."""
        passthrough = Passthrough(conversation.dialect == DIALECT, conversation.keeps)
        names = tool_names if conversation.dialect == DIALECT else custom_names
        reader = EventReader(len(conversation.turns), partial(names, conversation), passthrough)
        return ResponsesDecoder(reader, self._max_event)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """Returns the backend's own message, code and param where the client can act on them."""
        return decode_failure(status, headers, body)

    def count_request(self, request: BackendRequest) -> BackendRequest:
        """Returns the request for `input_tokens` of the API."""
        return count_request(request)

    def decode_count(self, body: bytes) -> int:
        """Returns `input_tokens`. Raises BackendProtocolError."""
        return decode_count(body)

    def decode_models(self, body: bytes) -> tuple[BackendModel, ...]:
        """Returns the models in the list. Raises BackendProtocolError."""
        return models_in_list(body, "data", "id", OPENAI_PLACES)

    def describe(self, body: bytes) -> Json:
        """Returns the request body as JSON."""
        return decode_json(body)
