"""Any backend that takes a conversation as text: its wire as data, its tools in words, its calls read from its text."""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from adapters.text.calling import calling_of, can_force
from adapters.text.decoder import TextDecoder
from adapters.text.encode import encode_request
from adapters.text.failure import decode_failure
from adapters.text.options import TextOptions
from adapters.text.prompt import write_prompt
from adapters.text.read import Reader
from adapters.text.speech import Speech
from gateway.adapter import BackendRequest, Capabilities
from gateway.errors import BackendError
from gateway.policy import Labels, Policy
from gateway.tools.prompted.ids import id_prefix
from gateway.tools.prompted.prose import prose_marks
from gateway.types import Conversation, Json
from gateway.wire.json_text import decode_json

_PROSE: Final = prose_marks(Labels())


class TextAdapter:
    """`wire` is how the backend is asked and how it answers; everything else is the same for all of them."""

    Options: ClassVar[type[msgspec.Struct]] = TextOptions

    def __init__(self, options: TextOptions, max_event: int) -> None:
        self._options = options
        self._wire = options.chosen_wire
        self._format = options.chosen_format
        self._reader = Reader(self._wire)
        self._max_event = max_event
        self._forces = can_force(self._wire, self._format)
        forces = self._forces or options.force_tools == "prompt"
        own = {"parallel_tool_calls", *(("tool_choice",) if forces else ())}
        self.capabilities = Capabilities(honours=self._wire.honours | own, flattens=True, continues=options.turn_guard)

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """The conversation as the wire's request. Raises InvalidRequest, Unsupported among it."""
        return encode_request(conversation, policy, self._options, self._wire, self._format)

    def decoder(self, conversation: Conversation) -> TextDecoder:
        """A decoder that takes calls of this conversation's tools, and of no others, for calls."""
        calling = calling_of(conversation, self._wire, self._format)
        also = _PROSE if self._options.prose_calls else ()
        parser = self._format.parser(calling.tools, id_prefix(conversation), conversation.tool_choice, also)
        speech = Speech(parser, calling.prefill, calling.forced, conversation.parallel_tool_calls)
        own_stops = (*conversation.sampling.stop, *self._format.stops)
        estimate = None
        if self._options.estimate_usage:
            estimate = len(write_prompt(conversation, Policy(images="placeholder"), self._format, calling).text)
        return TextDecoder(self._reader, speech, self._max_event, own_stops, estimate)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """The backend's own message where the client can act on it."""
        return decode_failure(status, headers, body)

    def readable(self, body: bytes) -> Json:
        """The request, which is JSON already."""
        return decode_json(body)
