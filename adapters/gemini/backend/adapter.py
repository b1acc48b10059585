"""Serves Google AI Studio, and any backend that speaks its generateContent."""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal
from urllib.parse import quote

import msgspec

from adapters.gemini import DIALECT
from adapters.gemini.backend.canonical import CARRIED
from adapters.gemini.backend.decoder import GeminiDecoder
from adapters.gemini.backend.encode import encode_body
from adapters.gemini.backend.failure import decode_failure
from adapters.gemini.backend.token_counter import count_request, decode_count
from adapters.gemini.table import EVENT_FIELDS, GENERATE, MODELS_PATH, STREAM, TABLE
from gateway.adapter import BackendModel, BackendRequest, Capabilities
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import BackendError
from gateway.core.policy import Policy
from gateway.framing.json_text import decode_json
from gateway.providers.gemini import STATE_RULE, TOOL_RULES
from gateway.wires.listed_models import FactPlaces, models_in_list

_ACCEPTS: Final = ("text/event-stream", "application/json")
_VERBS: Final = {True: f"{STREAM}?alt=sse", False: GENERATE}
_HEADERS: Final = {
    stream: {"content-type": "application/json", "accept": accept}
    for stream, accept in zip((True, False), _ACCEPTS, strict=True)
}
_PREFIX: Final = "models/"
# Source: Gemini API, `Model`.
_PLACES: Final = FactPlaces(
    display_name=("displayName",), context_length=("inputTokenLimit",), max_output=("outputTokenLimit",)
)


class GeminiOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The adapter's keys in a backend entry.

    `thinking`: how a reasoning effort is sent: as a level (Gemini 3 and later), or as a budget of tokens (Gemini 2.5).
    None: as the model takes it, by its name; a name without a version takes a level.
    """

    thinking: Literal["level", "budget"] | None = None


class GeminiAdapter:
    """Forwards every field and every part of a request of the same dialect, known or unknown, and of any other request
    the fields that the API publishes. It requests a stream exactly when the client requested one."""

    Options: ClassVar[type[msgspec.Struct]] = GeminiOptions
    counts = True
    provider: ClassVar[str] = "gcp.gemini"
    models_path: ClassVar[str | None] = MODELS_PATH
    models_headers: ClassVar[Mapping[str, str]] = {}
    capabilities = Capabilities(
        event_fields=EVENT_FIELDS,
        passthrough=DIALECT,
        supported_params=TABLE.supported,
        carries=CARRIED,
        tools=True,
        images=True,
        image_roles=frozenset({"user", "assistant", "tool"}),
        remote_images=False,
        system="first",
        result_media=True,
        files=frozenset({"application/pdf", "text/plain"}),
        max_stops=5,
        native=True,
        passes_tools=True,
        tool_rules=TOOL_RULES,
        state=STATE_RULE,
    )

    def __init__(self, options: GeminiOptions, max_event: int) -> None:
        self._options = options
        self._max_event = max_event

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """Encodes the client's request with the prepared turns; the backend's model name stands in the path."""
        # The body names no model: its base decides what the body may say.
        base = policy.base_model
        asked = conversation if base is None else msgspec.structs.replace(conversation, model=base)
        body, notices = encode_body(asked, self._options.thinking)
        model = quote(conversation.model.removeprefix(_PREFIX), safe="/:")
        return BackendRequest(
            f"{MODELS_PATH}/{model}:{_VERBS[conversation.stream]}",
            _HEADERS[conversation.stream],
            body,
            accepts=_ACCEPTS,
            notices=notices,
        )

    def decoder(self, conversation: Conversation) -> GeminiDecoder:
        """Creates a decoder for a stream or for one JSON response. The form of the response decides, not the form of
        the request."""
        return GeminiDecoder(self._max_event, len(conversation.turns), passes=conversation.dialect == DIALECT)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """Returns the backend's own message where the client can act on it."""
        return decode_failure(status, headers, body)

    def count_request(self, request: BackendRequest) -> BackendRequest:
        """Returns the request for `countTokens` of the API."""
        return count_request(request)

    def decode_count(self, body: bytes) -> int:
        """Returns `totalTokens`. Raises BackendProtocolError."""
        return decode_count(body)

    def decode_models(self, body: bytes) -> tuple[BackendModel, ...]:
        """Returns the models in the list. Raises BackendProtocolError."""
        listed = models_in_list(body, "models", "name", _PLACES)
        return tuple([msgspec.structs.replace(model, name=model.name.removeprefix(_PREFIX)) for model in listed])

    def describe(self, body: bytes) -> Json:
        """Returns the request body as JSON."""
        return decode_json(body)
