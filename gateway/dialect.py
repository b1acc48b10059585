"""Defines the contract of a client dialect: what clients send, what they are answered, and where.

A dialect is sans-IO, like an adapter: bytes and values in, values and bytes out. It never opens a socket, reads a
clock, draws a random number or logs, and it knows no backend. The life of one request in it:

1. The server finds the `Route` of a request and checks the client's key, which stands at one of the `key_places`.
2. `decode` turns the body into a `ClientRequest`: the `Conversation`, and what the answer repeats of the request. Where
   the client leaves the choice of a stream open, the dialect's own default applies (`Conversation.stream`).
3. A whole answer is made of all events by `encode_answer`. A stream is made by a `StreamEncoder`, event by event; both
   tell the same answer.
4. A failure before the first byte becomes a response by `encode_error`; a later one becomes the last bytes of the
   stream by `StreamEncoder.fail`. No failure may look like a complete answer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable
from urllib.parse import parse_qsl

import msgspec

from gateway.core.conversation import EMPTY, Conversation, JsonObject, Turn
from gateway.core.errors import GatewayError
from gateway.core.events import Event
from gateway.core.field_paths import FieldPaths
from gateway.core.model_facts import Effort, PatchForm
from gateway.dialects.document import Document
from gateway.dialects.openapi import JSON, Operation

# Names in lower case; of a header that occurs twice, the last.
Headers: TypeAlias = Mapping[bytes, bytes]

# What a route serves: an answer of a model, the list of models, one of them, the tokens of a request, what is stored of
# an answer, bytes that never change, or a refusal.
RouteKind: TypeAlias = Literal["generate", "models", "model", "count", "stored", "fixed", "refused"]


class RequestHead(msgspec.Struct, frozen=True):
    """The head of a request: its decoded path, its query as sent, and its headers.

    A saved request, which is explained or checked, has no head: its path is empty, and its model stands in `model`.
    """

    path: str
    query: bytes = b""
    headers: Headers = {}

    def parameter(self, name: str) -> str | None:
        """Returns the value of a query parameter, the last of several, or None."""
        return dict(parse_qsl(self.query.decode("latin-1"), keep_blank_values=True)).get(name)


class RequestMark(msgspec.Struct, frozen=True):
    """A header or a query parameter that only clients of the dialect send: it tells two dialects on one path apart.
    Beside the header `unless` it is no mark."""

    header: bytes = b""
    parameter: str = ""
    unless: bytes = b""

    def is_on(self, head: RequestHead) -> bool:
        """Returns whether the request has the mark."""
        if self.unless and self.unless in head.headers:
            return False
        return self.header in head.headers if self.header else head.parameter(self.parameter) is not None


class FixedAnswer(msgspec.Struct, frozen=True):
    """A body that never changes, sent with status 200."""

    body: bytes
    media_type: str = JSON


class Refusal(msgspec.Struct, frozen=True):
    """The error of a route that clients of the dialect know and the gateway does not serve."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = {}


class Route(msgspec.Struct, frozen=True):
    """A method and a path that the dialect serves.

    One part of the path may be a parameter, written `{name}`: any text, slashes among it (`/v1/models/{name}`). The
    parameter of a `model` route is the model's name; a `model` route without one reads the name from the first of
    `name_fields` in the body. Without an `operation` the route is an alias, which the OpenAPI document does not show.

    Another dialect may serve the same method and path: the route with a `mark` answers the requests that have it, the
    one without a mark all others. A `fixed` route has its answer in `fixed`, a `refused` one its error in `refusal`. A
    `model` route with a `fixed` answer sends that one for each model that exists. A `refused` route of GET with a
    `websocket` is refused only to a request that asks for none. `facts`: the answer of a `models` or
    `model` route says more than names, so that backends are asked what they say of their models.
    The dialect of a `count` route is a CountingDialect, that of a `stored` route a
    `gateway.dialects.stateful.StatefulDialect`, and that of a `websocket` a
    `gateway.dialects.websocket.WebSocketDialect`.
    """

    method: str
    path: str
    kind: RouteKind
    operation: Operation | None = None
    mark: RequestMark | None = None
    name_fields: tuple[str, ...] = ()
    fixed: FixedAnswer | None = None
    refusal: Refusal | None = None
    facts: bool = False
    websocket: bool = False


class KeyPlace(msgspec.Struct, frozen=True):
    """A header or a query parameter in which clients send their API key, behind the name of a scheme (`Bearer`) or
    alone. The name of a header is in lower case."""

    name: bytes
    scheme: str = ""
    where: Literal["header", "query"] = "header"

    def read(self, head: RequestHead) -> bytes:
        """Returns the key, or nothing where there is none in this place."""
        if self.where == "query":
            return (head.parameter(self.name.decode("ascii")) or "").encode()
        value = head.headers.get(self.name, b"")
        if not self.scheme:
            return value.strip()
        scheme, _, key = value.partition(b" ")
        return key.strip() if scheme.lower() == self.scheme.lower().encode("ascii") else b""

    def line(self, key: str) -> str:
        """Returns the header line, or the part of the query, that carries this key."""
        name = self.name.decode("ascii")
        if self.where == "query":
            return f"?{name}={key}"
        return f"{name.title()}: {self.scheme}{' ' if self.scheme else ''}{key}"


class AskedCompaction(msgspec.Struct, frozen=True):
    """A compaction of the history that a client asks for: where it has more tokens than `above` (None: where a provider
    makes it, and never by the gateway), and instead of an answer (`alone`) or before one."""

    above: int | None = 0
    alone: bool = True


class ClientRequest(msgspec.Struct, frozen=True):
    """A decoded request. `echo` holds the fields that the dialect's answers repeat; no other module reads them.

    `generates`: a model is to answer. A request that only asks whether there is a model gets the whole answer of no
    events, and no backend hears of it. `compacts`: a compaction of the history is asked for; `compacted`: the history
    holds one of the gateway (`gateway.core.sealed_compaction`), which stands for what is before it. `to_store` is what
    the record of the answer holds of the request, which no other module reads either; None: the client does not want
    the answer to be stored, or its dialect stores none. `lasting`: what is stored outlives the client's connection.
    `alone`: each message was read as one turn, by itself but for the ids that are derived, and without a fault, so that
    a later request may take the turns over (`Document.known`).
    """

    conversation: Conversation
    echo: JsonObject = EMPTY
    generates: bool = True
    compacts: AskedCompaction | None = None
    compacted: bool = False
    to_store: msgspec.Struct | None = None
    lasting: bool = True
    alone: bool = False


class AnswerTimes(msgspec.Struct, frozen=True):
    """How long each part of an answer took, in nanoseconds: from the head of the client's request until the backend was
    asked, from then until its first event, and from then on."""

    prepare: int = 0
    wait: int = 0
    answer: int = 0


class AnswerHead(msgspec.Struct, frozen=True):
    """The facts of an answer that are in no event.

    `unique` is 24 hexadecimal digits, of which the dialect makes the answer's ids; a client cannot guess those of
    another's stored answer. `created` is the Unix time in whole seconds, and `clock` returns the present one. `model`
    is the name that the client asked for. `diagnostics`: the client asks for all notices. `request_id` is that of the
    response's headers. `stored`: the answer will be stored if it gets complete. `times` returns how long its parts took
    so far.
    """

    unique: str
    created: int
    model: str
    clock: Callable[[], int]
    diagnostics: bool = False
    request_id: str = ""
    stored: bool = False
    times: Callable[[], AnswerTimes] = AnswerTimes


class StreamEncoder(Protocol):
    """Encodes one streamed answer; every method returns the bytes to send now.

    As long as they are empty, the response has not begun, and a failure still becomes a status. A dialect whose stream
    begins with an event of its own writes it before the first bytes that it returns. `headers` are those of the
    response, with its media type.
    """

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]: ...

    def feed(self, events: Iterable[Event]) -> bytes:
        """Encodes events, which obey `gateway.core.grammar`. They may be the notices of the preparation alone."""
        ...

    def quiet(self) -> bytes:
        """Returns what keeps the connection alive while there is no event; it may be the first bytes."""
        ...

    def fail(self, error: GatewayError) -> bytes:
        """Ends the stream with an error. Called once, and nothing is called after it."""
        ...

    def close(self) -> bytes:
        """Ends the stream of a complete answer. Nothing is called after it."""
        ...


class ErrorAnswer(NamedTuple):
    """An HTTP response to a request that failed: its body, and the headers that belong to the error."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    media_type: str = JSON


class ModelInfo(msgspec.Struct, frozen=True):
    """A model that a client may ask for.

    `created` is a Unix time; the gateway knows only its own start. `tools`, `images` and `files` (PDFs) say whether
    requests may have them, `parallel_calls` whether an answer may have several calls. `context_length`, `max_output` of
    one answer, and `compact_at`, from which a client should compact a conversation, are in tokens; None: not known.
    `efforts`: how much the model may be asked to think, empty where it takes no effort, None where that is not known.
    `apply_patch` is the form of Codex's tool for changes of files. `display_name` is for people.
    """

    name: str
    created: int
    tools: bool = True
    images: bool = False
    context_length: int | None = None
    files: bool = False
    parallel_calls: bool = True
    max_output: int | None = None
    compact_at: int | None = None
    efforts: tuple[Effort, ...] | None = None
    default_effort: Effort | None = None
    apply_patch: PatchForm = "none"
    display_name: str = ""

    @property
    def title(self) -> str:
        """The name for people."""
        return self.display_name or self.name


class ListedModels(msgspec.Struct, frozen=True):
    """The models that a client may ask for. `missing` says why others are not listed. `claude_ids`: in an API of
    Anthropic their ids are those of `gateway.core.model_facts.claude_id`."""

    models: Sequence[ModelInfo]
    missing: str | None = None
    claude_ids: bool = False


class Dialect(Protocol):
    """What one kind of client speaks. Constructed once, without arguments.

    - `key_places`: where its clients send their key, in the order in which they are looked at.
    - `paths`: how its clients know the places of a request, for errors, notices and logs. `paths.param("messages")` is
      the field with the history; a file with that alone may stand for a request.
    - `signs`: paths of fields that no other dialect with the same history field has, by which a saved request is
      recognised: `system`, `messages[].content[].type=tool_use`.
    - `request_id_headers`: the headers that carry the request's id in every response, beside `x-request-id`.
    - `error_type`: the body of its errors, for the OpenAPI document.
    - `explain_type`: a request of the dialect with the fields of `/v1/explain`, for the same document.
    """

    name: ClassVar[str]
    routes: ClassVar[tuple[Route, ...]]
    key_places: ClassVar[tuple[KeyPlace, ...]]
    paths: ClassVar[FieldPaths]
    signs: ClassVar[frozenset[str]]
    request_id_headers: ClassVar[tuple[bytes, ...]]
    error_type: ClassVar[type[msgspec.Struct]]
    explain_type: ClassVar[type[msgspec.Struct]]

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        """Decodes the body of a `generate` or `count` route. Raises InvalidRequest, which names the faulty field in
        `param`."""
        ...

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        """Returns a turn as the client would write it in the field with the history, for a diagnosis."""
        ...

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        """Returns the whole answer as JSON. The notices of the preparation stand before the events of the backend."""
        ...

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> StreamEncoder:
        """Returns the encoder of one streamed answer."""
        ...

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        """Returns the response to a request that failed before its answer began."""
        ...

    def encode_models(self, models: ListedModels) -> bytes:
        """Returns the list of models as JSON."""
        ...

    def encode_model(self, model: ModelInfo) -> bytes:
        """Returns one model as JSON."""
        ...

    def example(self, model: str) -> JsonObject:
        """Returns the smallest request to a model that says `Hello`, for pages and commands that show one."""
        ...


@runtime_checkable
class CountingDialect(Dialect, Protocol):
    """Extends a Dialect whose clients ask for the tokens of a request that they may send."""

    def encode_count(self, tokens: int) -> bytes:
        """Returns the answer of a `count` route as JSON: what the backend counts, or an estimate."""
        ...


@runtime_checkable
class CompactingDialect(Dialect, Protocol):
    """Extends a Dialect whose clients ask for a compaction of the history (`ClientRequest.compacts`)."""

    def compaction_opening(self, request: ClientRequest) -> Sequence[Event]:
        """Returns the events with which a stream opens before the compaction is made: what keeps it alive meanwhile is
        then what the client takes for a sign of life."""
        ...

    def without_request(self, conversation: Conversation) -> Conversation:
        """Returns the conversation without what asks for a compaction, for a backend that makes none."""
        ...

    def compaction_events(self, request: ClientRequest, sealed: str, text: str) -> Sequence[Event]:
        """Returns the events of the one item that keeps the `sealed` summary, and those with which an answer says that
        it is nothing else. A client may read the `text` where its API has a place for it."""
        ...
