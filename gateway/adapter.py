"""Defines the contract of a backend: an adapter's inputs, its outputs, and its declared capabilities.

An adapter is sans-IO: it never opens a socket, reads a clock, an environment variable or a file, and never logs.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from gateway.core.conversation import Conversation, Json, Role
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.core.model_facts import UNKNOWN, ModelFacts
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.state_rule import StateRule
from gateway.providers.cache_rules import CacheRules
from gateway.providers.messages_rules import MessagesRules
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.tool_rules import NO_RULES, ToolRules

# The names of an object's fields by the object's path in an event, such as `choices[].delta`.
EventFields: TypeAlias = Mapping[str, frozenset[str]]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Declared facts of a backend; an unsupported feature is emulated, refused or reported, never ignored.

    - `supported_params` names the request fields (OpenAI chat names) that reach the backend with their meaning intact,
      `model` if its name does.
    - `prompts` names those that no field of the backend enforces: the prompt asks for them, and the response is checked
      (`gateway.capabilities.prompted_demands`); it may hold `tool_choice` and `response_format`.
    - `passthrough` names the client dialect that the backend speaks itself, None for none: of its requests every field,
      known or unknown, reaches the backend, and no other declaration is read.
    - `carries` names the fields of messages and their parts, beside those of the protocol, that reach the backend,
      `strict` if that of a tool does, `custom` if tools do whose input is free text, and `is_error` if that of a result
      does. `extra_content.PROVIDER` is the state of one provider.
    - `tools` and `images` declare the content of turns; other content never reaches the adapter.
    - `image_roles` are the roles whose messages may hold an image; `remote_images`: its URL may differ from `data:`.
    - `system`: `first` where system text stands only before the conversation, as in a field of its own.
    - `result_media`: the results of this wire hold images and files, whatever a profile says of tool messages.
    - `files` are the media types of the files that messages of `file_roles` (users, results) may hold, where no profile
      says it; `remote_files`: their URL may differ from `data:`.
    - `results`: `anywhere` where the result of a call may stand at any place behind it.
    - `text_only`: the conversation is sent as one text, so that a continuation turn may be needed.
    - `continues_text`: the model continues that text, so that it may write turns which are not its own.
    - `max_stops`: how many stop sequences the backend accepts, None for any number; `blank_stops`: also such of nothing
      but blanks. The response is searched for the others. Both are read where `stop` is supported.
    - `request_rules`: its requests have the fields of chat completions, so that a profile's rules for them apply.
    - `native`: the backend accepts chat messages as clients write them, so that the limits at the top level of
      settings.json, which are made for a history that is sent as one message, do not apply to it.
    - `passes_tools`: the tools of a request of its own API pass as they are: that API holds tools back itself, or its
      client gets calls as events of the API.
    - `tool_rules`: what the provider demands of the functions of a request, where no profile says it.
    - `call_id`: the ids of calls that the provider accepts, where no profile says it: others are replaced by derived
      ones, and restored in the response.
    - `messages`: what the provider demands of a request of the Messages API, where no profile says it; None: the wire
      is another one.
    - `cache`: by which marks a request says what of the prompt to keep in a cache, where no profile says it: that of
      `request_rules` does for them; None: by none.
    - `state`: which state of its answers the provider wants back, for the state cache, where no profile says it.
    - `request_id`: each request holds an id of its own, `Conversation.request_id`.
    - `compacts`: the profiles whose provider compacts a history itself, when a client of the backend's own API asks.
      They also count for a model without a profile at the address of that provider.
    - `event_fields`: the fields that the events of a stream may have by the provider's reference, for the doctor, which
      reports others; empty: they are not known. An object whose path is not in it is not looked into.
    """

    supported_params: frozenset[str] = frozenset()
    prompts: frozenset[str] = frozenset()
    passthrough: str | None = None
    carries: frozenset[str] = frozenset()
    tools: bool = True
    images: bool = False
    image_roles: frozenset[Role] = frozenset({"system", "developer", "user", "assistant", "tool"})
    remote_images: bool = True
    system: Literal["anywhere", "first"] = "anywhere"
    result_media: bool = False
    files: frozenset[str] = frozenset()
    file_roles: frozenset[Role] = frozenset({"user", "tool"})
    remote_files: bool = False
    results: Literal["adjacent", "anywhere"] = "adjacent"
    text_only: bool = False
    continues_text: bool = False
    max_stops: int | None = None
    blank_stops: bool = True
    request_rules: bool = False
    native: bool = False
    passes_tools: bool = False
    tool_rules: ToolRules = NO_RULES
    call_id: Alphabet = Alphabet()
    messages: MessagesRules | None = None
    cache: CacheRules | None = None
    state: StateRule | None = None
    request_id: bool = False
    compacts: tuple[Profile, ...] = ()
    event_fields: EventFields = {}


class SentText(msgspec.Struct, frozen=True):
    """The conversation as the text in a body, for a diagnosis of what is sent.

    `system` is its leading system text; when that has a separate field (`apart`), `text` is the part after it.
    """

    text: str
    system: str = ""
    apart: bool = False


# A header with the time that the backend has left: gRPC's, and Connect's.
TimeoutHeader: TypeAlias = Literal["grpc-timeout", "connect-timeout-ms"]


class BackendRequest(msgspec.Struct, frozen=True):
    """One HTTP request to the backend, without its credential. `path` is joined to the backend's base_url.

    `accepts` lists the allowed media types of a 200 response. `notices` report what encoding had to change or leave
    out. `sent_text` is the text in the body, where the conversation is sent as text. `http2`: it is sent over HTTP/2.
    `deadline` names the header in which the transport writes what remains of `timeouts.total`.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes
    accepts: tuple[str, ...]
    notices: tuple[Notice, ...] = ()
    method: str = "POST"
    sent_text: SentText | None = None
    http2: bool = False
    deadline: TimeoutHeader | None = None


class Decoder(Protocol):
    """Decodes the bytes of one response into events, in the order that `gateway.core.grammar` allows.

    `done` turns true when nothing more can follow, so that a backend which keeps its socket open delays no client. A
    decoder may have a further attribute, `extensions` (`extensions_of`).
    """

    done: bool

    def feed(self, data: bytes) -> list[Event]:
        """Decodes the next bytes, cut anywhere.

        Raises BackendError (BackendProtocolError for malformed bytes, BackendRejected for an error the backend sent in
        its stream) and nothing else. The error carries the events that the same bytes hold before the fault
        (`error.keep(events)`), so that no text depends on how the bytes were cut.
        """
        ...

    def close(self) -> list[Event]:
        """Ends the decoding. Raises BackendTruncated, with its events like `feed`, unless the response was complete."""
        ...


@runtime_checkable
class Holding(Protocol):
    """What holds parts of a response back until they are certain.

    `progress` grows with each of them, so that a busy backend is distinguished from one that has stopped.
    """

    @property
    def progress(self) -> int: ...


@runtime_checkable
class HeadDecoder(Protocol):
    """Extends a Decoder whose wire may report its status in the head of a response (gRPC-Web, "trailers-only")."""

    def head(self, headers: Mapping[str, str]) -> None:
        """Takes the headers of a 200 response, in lower case, before the body. Raises BackendError for a failure."""
        ...


@runtime_checkable
class TrailerDecoder(Protocol):
    """Extends a Decoder whose wire reports its status in the trailers of a response (gRPC). They never come through
    `feed`, so that no body can forge them."""

    def trailers(self, headers: Mapping[str, str]) -> list[Event]:
        """Takes the trailers, in lower case, after the body and before `close`. Raises BackendError like `feed`."""
        ...


class DecoderExtensions(msgspec.Struct, frozen=True):
    """What a decoder does beside the contract of all: its attribute `extensions`. None: nothing of the kind."""

    holding: Holding | None = None
    head: HeadDecoder | None = None
    trailers: TrailerDecoder | None = None


NO_EXTENSIONS: Final = DecoderExtensions()


def extensions_of(decoder: Decoder) -> DecoderExtensions:
    """Returns the extensions of the decoder of one response. Those of a decoder without the attribute are found by
    their names, which takes longer."""
    found: DecoderExtensions | None = getattr(decoder, "extensions", None)
    if found is not None:
        return found
    return DecoderExtensions(
        decoder if isinstance(decoder, Holding) else None,
        decoder if isinstance(decoder, HeadDecoder) else None,
        decoder if isinstance(decoder, TrailerDecoder) else None,
    )


class Adapter(Protocol):
    """One backend family. Constructed once per backend entry of settings.json with that entry's own options."""

    Options: ClassVar[type[msgspec.Struct]]
    capabilities: Capabilities

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """Encodes a prepared conversation. Deterministic; raises InvalidRequest for unsupported content."""
        ...

    def decoder(self, conversation: Conversation) -> Decoder:
        """Returns a new decoder for the response to this conversation (its tools' schemas type the arguments)."""
        ...

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """Maps a response other than 200 to the error that the client receives. Header names are lower case."""
        ...

    def describe(self, body: bytes) -> Json:
        """Returns a body that `encode` made as readable JSON, for a diagnosis of what is sent."""
        ...


@runtime_checkable
class ProviderAdapter(Protocol):
    """Extends an Adapter whose wire is that of one provider.

    `provider` is its name in the conventions of OpenTelemetry for generative AI; traces show it.
    """

    provider: ClassVar[str]


def restricted_decoder(adapter: Adapter, conversation: Conversation) -> Decoder:
    """Returns a new decoder that drops calls of the backend's built-in tools (`Policy.disable_warp_tools`). An adapter
    that would send such calls to the client has a further method of this name."""
    restricted: Callable[[Conversation], Decoder] = getattr(adapter, "restricted_decoder", adapter.decoder)
    return restricted(conversation)


class FieldPlace(msgspec.Struct, frozen=True):
    """One field of the message that a backend receives, such as `turns[0].text`, the place in the backend's entry of
    settings.json that made it, and its value as JSON."""

    field: str
    place: str
    value: Json


@runtime_checkable
class SchemaAdapter(Protocol):
    """Extends an Adapter whose messages a protobuf schema describes. `schema` is that of its options."""

    schema: DescriptorSet

    def field_places(self, conversation: Conversation, policy: Policy) -> tuple[FieldPlace, ...]:
        """Returns every field of the message for a prepared conversation. Raises InvalidRequest like `encode`."""
        ...


class UnsignedRequest(msgspec.Struct, frozen=True):
    """One request as it is sent, but for its signature.

    `path` and `query` (without `?`) are percent-encoded as in the request line. `headers` have names in lower case;
    `host` is among them, over HTTP/2 too. What each connection or each try adds is not: `content-length`, `te`,
    `traceparent` and the header that `BackendRequest.deadline` names.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@runtime_checkable
class SigningAdapter(Protocol):
    """Extends an Adapter whose backend wants a signature of each request in place of a key, such as Signature Version 4
    of AWS. The credential of the settings is then sent in no header: `sign` gets it."""

    def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        """Returns the headers to add, for the value of the variable in `api_key_env` and the time in UTC. Called for
        each try, also when the same request is sent again. Deterministic; raises ValueError for a key that it cannot
        sign with."""
        ...


@runtime_checkable
class CountingAdapter(Protocol):
    """Extends an Adapter whose backend counts the tokens of a request without answering it.

    `counts`: this backend has a counter. One that refuses the request with 404, 405 or 501 has none for that model.
    """

    counts: bool

    def count_request(self, request: BackendRequest) -> BackendRequest:
        """Returns the request that asks how many tokens one that `encode` made has; called only while `counts`."""
        ...

    def decode_count(self, body: bytes) -> int:
        """Returns the number in the answer. Raises BackendProtocolError for a body without one."""
        ...


class BackendModel(msgspec.Struct, frozen=True):
    """A model in a backend's list: its name there, its context in tokens, None where the list does not say it, and what
    else the list says of it."""

    name: str
    context_length: int | None = None
    facts: ModelFacts = UNKNOWN


@runtime_checkable
class ListingAdapter(Protocol):
    """Extends an Adapter whose backend lists its models.

    `models_path` is joined to base_url and requested with GET. None: this backend has no list. `models_headers` are
    headers that the request for the list needs, as in BackendRequest.
    """

    models_path: str | None
    models_headers: Mapping[str, str]

    def decode_models(self, body: bytes) -> tuple[str | BackendModel, ...]:
        """Returns the models in the list, by their names alone where it says nothing else. Raises BackendProtocolError
        for a body that is no list."""
        ...
