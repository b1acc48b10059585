"""Defines the conformance kit's input: an adapter as settings.json would name it, and a backend's response."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import msgspec

from gateway.adapter import Adapter, Decoder, extensions_of
from gateway.core.conversation import EMPTY, Conversation, JsonObject, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.history.prepare import prepare
from gateway.settings import check_options

MAX_EVENT = 4 << 20

GREETING = Conversation((Turn("user", (Text("Good morning."),), index=0),), model="model", stream=True)


class AdapterClass(Protocol):
    """The class of an adapter, as the gateway uses it."""

    @property
    def Options(self) -> type[msgspec.Struct]: ...

    def __call__(self, options: Any, max_event: int) -> Adapter: ...  # Any: each adapter has its own type of options


class Case(msgspec.Struct, frozen=True, dict=True):
    """One adapter, one conversation, and the bytes of one complete and valid response to it.

    `expected`: the events of the response, cut into any deltas; empty: not compared. `options` are the adapter's own
    keys of its backend entry in settings.json. Choose a response of one or two kilobytes: it is also cut at every byte.
    `marks_end` is false for a wire on which only HTTP marks the end of the response: there the bytes do not show a cut.
    `trailers` follow the response on a wire that ends with them (`TrailerDecoder`), with names in lower case.
    `checksums`: the wire has checksums over all its bytes, so that a damaged byte is an error. `states` are two
    examples of the state that the backend gives out for its own use; none: such with fields of the known providers.
    `key` is one that an adapter which signs takes.
    """

    name: str
    adapter: AdapterClass
    wire: bytes
    expected: tuple[Event, ...] = ()
    conversation: Conversation = GREETING
    policy: Policy = Policy()
    options: JsonObject = EMPTY
    marks_end: bool = True
    trailers: Mapping[str, str] = {}
    checksums: bool = False
    states: tuple[JsonObject, ...] = ()
    key: str = "the-secret-key:the-session-token"

    def __str__(self) -> str:
        return f"{self.adapter_name}-{self.name}"

    @property
    def adapter_name(self) -> str:
        return getattr(self.adapter, "__name__", "adapter")

    def build(self, max_event: int = MAX_EVENT) -> Adapter:
        """Creates a new adapter, as the gateway does. Raises SettingsError for wrong options."""
        return self.adapter(check_options(self.options, self.adapter.Options, "options"), max_event)

    @cached_property
    def shared(self) -> Adapter:
        """The adapter that all checks share, as all requests of the gateway do. Raises SettingsError for wrong
        options."""
        return self.build()

    def decoder(self, adapter: Adapter, conversation: Conversation) -> Decoder:
        """Returns the adapter's decoder, which takes the trailers of the case at the end of the bytes."""
        decoder = adapter.decoder(conversation)
        return _WithTrailers(decoder, self.trailers) if self.trailers else decoder

    def sends(self, conversation: Conversation, policy: Policy | None = None) -> Exchange:
        """Returns the exchange of a conversation as the gateway begins it: it enforces what the adapter declares before
        it calls the adapter. Raises InvalidRequest for content that cannot be sent; the contract allows no other
        error."""
        return Exchange(self.shared, conversation, policy or self.policy)

    def prepared(self) -> Conversation:
        """Returns the conversation after the passes, as an adapter receives it."""
        return prepare(self.conversation, self.policy).conversation


class _WithTrailers:
    """A decoder whose response ends with these trailers."""

    def __init__(self, decoder: Decoder, trailers: Mapping[str, str]) -> None:
        self.done = decoder.done
        self._decoder = decoder
        self._trailers = trailers

    def feed(self, data: bytes) -> list[Event]:
        events = self._decoder.feed(data)
        self.done = self._decoder.done
        return events

    def close(self) -> list[Event]:
        taking = extensions_of(self._decoder).trailers
        if taking is None:
            raise TypeError("the decoder of a case with trailers takes none")
        events = taking.trailers(self._trailers)
        try:
            events += self._decoder.close()
        except BackendError as error:
            error.keep(events)
            raise
        self.done = self._decoder.done
        return events
