"""Defines a service of others: what its server is sent, what its model answers, and the words of its wire for both."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, Protocol, TypeAlias

import grpc
import msgspec

from adapters.proto.backend.schema import MessageType, message_class
from gateway.core.conversation import Json, JsonObject
from tests.adapters.proto.backend.grpc_server import Context, Shape, grpc_backend

# A message whose class exists only at run time, and the context of a call: grpcio has no types.
Message: TypeAlias = Any

# What the tests have as the credential of a service.
KEY: Final = "a-key-of-the-tests"
_WAIT_S: Final = 30


class Said(msgspec.Struct, frozen=True):
    """A text, by the role of its speaker."""

    role: str
    text: str


class Called(msgspec.Struct, frozen=True):
    """A call of the model and its result. `failed`: the service is told that the tool has failed."""

    name: str
    arguments: JsonObject
    result: str
    failed: bool = False


class Offered(msgspec.Struct, frozen=True):
    """A tool."""

    name: str
    description: str
    parameters: JsonObject


class Request(msgspec.Struct, frozen=True):
    """What a service has understood. `choice`: the word of a choice, or the name of the tool that must be called.
    `stream`: whether an answer in several messages is asked for, where the request says so. `state`: what the service
    gave out with the last call. `others`: further fields by their names."""

    model: str
    history: tuple[Said | Called, ...]
    tools: tuple[Offered, ...] = ()
    choice: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    stream: bool = True
    state: str | None = None
    others: Mapping[str, Json] = {}


class Reply(msgspec.Struct, frozen=True):
    """What the model answers: pieces of text, calls, and the end. `instead`: a text that takes their place at the end.

    `status`: in place of the end, the call fails with this status of gRPC and its text. `held`: nothing comes after the
    pieces until the client leaves.
    """

    pieces: tuple[str, ...] = ()
    calls: tuple[tuple[str, JsonObject], ...] = ()
    finish: Literal["stop", "length", "content_filter", "invalid_call"] = "stop"
    instead: str | None = None
    status: tuple[int, str] | None = None
    held: bool = False


class Refused(Exception):
    """A request that the service does not accept: a status of gRPC, and the reason."""

    def __init__(self, text: str, code: int = 3) -> None:
        super().__init__(text)
        self.code = code


class Service(Protocol):
    """One service. `path` is that of its method, `scheme` that of its credential, and `entry` is the one of
    settings.json, without an address and a credential. `choices` are the words and `named` that a request can choose
    by; `most_calls` is the number of calls that one answer can hold."""

    name: str
    path: str
    scheme: str
    model: str
    entry: Mapping[str, Json]
    choices: frozenset[str]
    most_calls: int

    def read(self, message: Message) -> Request:
        """Returns what a request says. Raises Refused."""
        ...

    def write(self, reply: Reply) -> Iterator[Mapping[str, Any]]:
        """Yields the messages of a streamed answer as JSON of protobuf."""
        ...

    def whole(self, reply: Reply) -> Mapping[str, Any]:
        """Returns the message of an answer that is not streamed, with what one message can hold of it."""
        ...


class ServiceBackend:
    """A running service: `requests` are what it has understood, `metadata` those of all calls, and `replies` what it
    still has to answer. `left` is set when a client has left a reply that is held."""

    def __init__(self, service: Service, request: MessageType, response: MessageType, shape: Shape) -> None:
        self.base_url = ""
        self._unary = shape == "unary"
        self.requests: list[Request] = []
        self.metadata: list[Mapping[str, str]] = []
        self.replies: list[Reply] = []
        self.left = threading.Event()
        self._service = service
        self._request, self._response = message_class(request), message_class(response)

    def play(self, body: bytes, context: Context) -> Iterator[bytes]:
        """Answers one call with the next reply."""
        try:
            self.metadata.append(dict(context.invocation_metadata()))
            self._check_credential(self.metadata[-1])
            request = self._service.read(self._request.FromString(body))
            self.requests.append(request)
        except Refused as refused:
            context.abort(status(refused.code), str(refused))
        reply = self.replies.pop(0)
        # Before anything is sent: of a client that leaves meanwhile, grpcio asks for no more.
        if reply.held:
            context.add_callback(self.left.set)
        streams = request.stream and not self._unary
        for message in self._service.write(reply) if streams else (self._service.whole(reply),):
            yield self._written(message)
        if reply.status is not None:
            context.abort(status(reply.status[0]), reply.status[1])
        if reply.held:
            self.left.wait(_WAIT_S)

    def _check_credential(self, metadata: Mapping[str, str]) -> None:
        if metadata.get("authorization") != f"{self._service.scheme} {KEY}":
            raise Refused("no valid credential", 16)

    def _written(self, message: Mapping[str, Any]) -> bytes:
        from google.protobuf.json_format import ParseDict

        return ParseDict(dict(message), self._response()).SerializeToString()


@contextmanager
def running_service(
    service: Service, request: MessageType, response: MessageType, shape: Shape = "server stream"
) -> Iterator[ServiceBackend]:
    """Serves with these types of messages until the block ends."""
    backend = ServiceBackend(service, request, response, shape)
    with grpc_backend(service.path, backend.play, shape) as server:
        backend.base_url = server.base_url
        yield backend


def status(code: int) -> Any:
    """Returns grpcio's value for a status."""
    return next(one for one in grpc.StatusCode if one.value[0] == code)


def word_of(message: Message, name: str) -> str:
    """Returns the name of the value of an enum."""
    field = message.DESCRIPTOR.fields_by_name[name]
    return str(field.enum_type.values_by_number[getattr(message, name)].name)


def of_kind(message: Message, name: str) -> str:
    """Returns the member of a oneof that is set. Raises Refused where none is."""
    kind = message.WhichOneof(name)
    if kind is None:
        raise Refused(f"{message.DESCRIPTOR.name} has no {name}")
    return str(kind)


def in_pieces(texts: Sequence[str]) -> Iterator[str]:
    """Yields the text so far after each piece."""
    for count in range(len(texts)):
        yield "".join(texts[: count + 1])
