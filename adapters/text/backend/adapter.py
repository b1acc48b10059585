"""Serves any backend that takes a conversation as text, through a wire that is described as data.

The prompt describes the tools, and tool calls are parsed from the backend's text.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from adapters.text.backend.call_filter import CallFilter
from adapters.text.backend.decoder import TextDecoder
from adapters.text.backend.encode import encode_request, request_values, schema_of
from adapters.text.backend.event_fields import EVENT_FIELDS
from adapters.text.backend.event_reader import Reader
from adapters.text.backend.failure import decode_failure
from adapters.text.backend.options import TextOptions
from adapters.text.backend.prompt import Prompt
from adapters.text.backend.thought import Thought
from adapters.text.backend.tool_choice import ToolChoicePlan, can_force, plan_tool_choice
from gateway.adapter import BackendModel, BackendRequest, Capabilities
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import BackendError
from gateway.core.policy import Labels, Policy
from gateway.framing.json_text import decode_json
from gateway.tool_calls.parsers.format import id_prefix
from gateway.tool_calls.parsers.labelled_call import prose_marks
from gateway.wires.listed_models import OPENAI_PLACES, models_in_list

_PROSE: Final = prose_marks(Labels())


class TextAdapter:
    """Implements every text backend. `wire` describes the request and the response; everything else is common to all of
    them."""

    Options: ClassVar[type[msgspec.Struct]] = TextOptions

    def __init__(self, options: TextOptions, max_event: int) -> None:
        self._options = options
        self._wire = options.chosen_wire
        self._format = options.chosen_format
        self._reader = Reader(self._wire)
        self._max_event = max_event
        self.models_headers: Mapping[str, str] = {}
        self.models_path = None if self._wire.models is None else self._wire.models.path
        self._forces = can_force(self._wire, self._format)
        forces = self._forces or options.force_tools == "prompt"
        own = {"parallel_tool_calls", *(("tool_choice",) if forces else ())}
        self.capabilities = Capabilities(
            supported_params=self._wire.supported_params | own,
            text_only=True,
            continues_text=options.turn_guard,
            request_id="$request_id" in self._wire.names,
            event_fields=EVENT_FIELDS.get(options.wire, {}) if isinstance(options.wire, str) else {},
        )

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """Encodes the conversation as the wire's request. Raises InvalidRequest, including Unsupported."""
        return encode_request(conversation, policy, self._options, self._wire, self._format)

    def decoder(self, conversation: Conversation) -> TextDecoder:
        """Creates a decoder that accepts only calls of this conversation's tools as calls."""
        call_filter = self.call_filter(conversation)
        return TextDecoder(self._reader, call_filter, self._max_event, conversation.sampling.stop)

    def request_values(self, conversation: Conversation, policy: Policy) -> tuple[Prompt, dict[str, Json]]:
        """Returns the prompt and the values for a template of another form than JSON. Raises InvalidRequest."""
        return request_values(conversation, policy, self._options, self._wire, self._format)

    def call_filter(self, conversation: Conversation) -> CallFilter:
        """Creates the filter that finds this conversation's calls and thoughts in the text of one response."""
        calling = plan_tool_choice(conversation, self._wire, self._format)
        also = _PROSE if self._options.prose_calls else ()
        parser = self._format.parser(calling.tools, id_prefix(conversation), conversation.tool_choice, also)
        thought = self._thought(conversation, calling)
        parallel = conversation.parallel_tool_calls
        return CallFilter(parser, calling.prefill, calling.forced, parallel, conversation.paths, thought)

    def _thought(self, conversation: Conversation, calling: ToolChoicePlan) -> Thought | None:
        """Returns the parser of thoughts, or None when the response has a prefill or a constrained shape and so has no
        place for a thought."""
        if self._options.thinking == "text" or calling.prefill:
            return None
        if self._wire.constrains and schema_of(conversation, calling) is not None:
            return None
        return Thought(self._options.thinking == "opened")

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """Returns the backend's own message where the client can act on it."""
        return decode_failure(status, headers, body)

    def decode_models(self, body: bytes) -> tuple[BackendModel, ...]:
        """Returns the models in the list, which the wire must have. Raises BackendProtocolError."""
        places = self._wire.models
        assert places is not None
        return models_in_list(body, places.list, places.name, OPENAI_PLACES)

    def describe(self, body: bytes) -> Json:
        """Returns the request body as JSON."""
        return decode_json(body)
