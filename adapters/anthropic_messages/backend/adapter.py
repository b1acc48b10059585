"""Serves any backend with the Messages API of Anthropic, with the client's own fields if the client speaks it."""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from adapters.anthropic_messages import DIALECT, PROVIDER
from adapters.anthropic_messages.backend.canonical import CARRIED
from adapters.anthropic_messages.backend.decoder import MessagesDecoder
from adapters.anthropic_messages.backend.encode import encode_request
from adapters.anthropic_messages.backend.failure import decode_failure
from adapters.anthropic_messages.backend.options import AnthropicMessagesOptions
from adapters.anthropic_messages.backend.token_counter import count_request, decode_count
from adapters.anthropic_messages.table import EVENT_FIELDS, MODELS_PATH, TABLE
from gateway.adapter import BackendModel, BackendRequest, Capabilities
from gateway.core.conversation import Conversation, Json, Role
from gateway.core.errors import BackendError
from gateway.core.policy import Policy
from gateway.framing.json_text import decode_json
from gateway.providers.anthropic import MESSAGES_PROFILE
from gateway.providers.cache_rules import MESSAGES_CACHE
from gateway.providers.messages_rules import NO_DEMANDS
from gateway.providers.tool_rules import NO_RULES
from gateway.wires.listed_models import FactPlaces, models_in_list

_ACCEPTS: Final = ("text/event-stream", "application/json")
# Source: the package anthropic, `types/model_info.py`, `model_capabilities.py`, `effort_capability.py`.
_PLACES: Final = FactPlaces(
    display_name=("display_name",),
    context_length=("max_input_tokens",),
    max_output=("max_tokens",),
    images=("capabilities.image_input",),
    files=("capabilities.pdf_input",),
    efforts="capabilities.effort",
)
_IMAGE_ROLES: Final[frozenset[Role]] = frozenset({"user", "tool"})


class AnthropicMessagesAdapter:
    """Forwards every field of a Messages request, known or unknown, and of any other request the fields that the API
    publishes. It requests a stream exactly when the client requested one."""

    Options: ClassVar[type[msgspec.Struct]] = AnthropicMessagesOptions
    counts = True
    provider: ClassVar[str] = PROVIDER
    # Without a limit the API lists 20 models.
    models_path: ClassVar[str | None] = f"{MODELS_PATH}?limit=1000"

    def __init__(self, options: AnthropicMessagesOptions, max_event: int) -> None:
        self.capabilities = Capabilities(
            event_fields=EVENT_FIELDS,
            passthrough=DIALECT,
            supported_params=TABLE.supported,
            prompts=frozenset(options.prompted),
            carries=CARRIED,
            tools=True,
            images=True,
            image_roles=_IMAGE_ROLES,
            system="first",
            result_media=True,
            files=frozenset({"application/pdf"}),
            remote_files=True,
            blank_stops=False,
            native=True,
            passes_tools=True,
            tool_rules=MESSAGES_PROFILE.tool_rules or NO_RULES,
            call_id=MESSAGES_PROFILE.call_id,
            messages=MESSAGES_PROFILE.messages,
            cache=MESSAGES_CACHE,
            state=MESSAGES_PROFILE.state,
            compacts=(MESSAGES_PROFILE,),
        )
        self._options = options
        self._max_event = max_event
        self.models_headers: Mapping[str, str] = {"anthropic-version": options.version}
        self._headers = {
            stream: {"content-type": "application/json", "accept": accept, **self.models_headers}
            for stream, accept in zip((True, False), _ACCEPTS, strict=True)
        }

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """Encodes the request with the backend's model name and the prepared messages. Raises InvalidRequest for an
        image and for a response format that the API cannot read."""
        rules = policy.profile.messages or self.capabilities.messages or NO_DEMANDS
        encoded = encode_request(
            conversation, self._options, rules, policy.base_model, marks=policy.prompt_cache.breakpoints
        )
        headers = self._headers[conversation.stream]
        if encoded.betas:
            headers = {**headers, "anthropic-beta": encoded.betas}
        return BackendRequest(self._options.path, headers, encoded.body, accepts=_ACCEPTS, notices=encoded.notices)

    def decoder(self, conversation: Conversation) -> MessagesDecoder:
        """Creates a decoder for a stream or for one JSON response. The form of the response decides, not the form of
        the request."""
        return MessagesDecoder(
            self._max_event, seed=len(conversation.turns), own_client=conversation.dialect == DIALECT
        )

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """Returns the backend's own message where the client can act on it."""
        return decode_failure(status, headers, body)

    def count_request(self, request: BackendRequest) -> BackendRequest:
        """Returns the request for `count_tokens` of the API."""
        return count_request(request)

    def decode_count(self, body: bytes) -> int:
        """Returns `input_tokens`. Raises BackendProtocolError."""
        return decode_count(body)

    def decode_models(self, body: bytes) -> tuple[BackendModel, ...]:
        """Returns the models in the list. Raises BackendProtocolError."""
        return models_in_list(body, "data", "id", _PLACES)

    def describe(self, body: bytes) -> Json:
        """Returns the request body as JSON."""
        return decode_json(body)
