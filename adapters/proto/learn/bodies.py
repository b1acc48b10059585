"""Reads the bodies of recorded exchanges as messages, and writes bodies of messages that were recorded as JSON."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, Message

from adapters.proto.backend.carriers import CARRIERS, find_carrier
from adapters.proto.backend.frames import END
from adapters.proto.backend.schema import Method, Schema, message_class
from adapters.proto.backend.unknown_values import unknown_values
from adapters.proto.learn.exchange import KnownAnswer, KnownError, RecordedExchange
from adapters.proto.learn.response import RecordedResponse, view
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import (
    BackendError,
    BackendProtocolError,
    BackendTruncated,
    InvalidRequest,
    OptionError,
    SettingsError,
)

_LARGEST: Final = 64 << 20
_OK: Final = "0"
# The carrier of messages that were recorded without one.
GRPC: Final = "grpc"


def read_request(method: Method, carrier: str, exchange: RecordedExchange) -> Any:
    """Returns the message of a recorded request. (Any: its class exists only at run time.) Raises SettingsError."""
    try:
        return message_class(method.request).FromString(find_carrier(carrier, method).read(exchange.body))
    except (DecodeError, ValueError, RecursionError) as error:
        raise SettingsError(_unreadable(exchange, "request", method.request, carrier)) from error


def read_response(method: Method, carrier: str, exchange: RecordedExchange) -> RecordedResponse:
    """Returns the messages of a recorded response. Raises SettingsError."""
    messages: list[Any] = []
    failed = exchange.trailers.get("grpc-status", _OK) != _OK
    try:
        _collect(method, carrier, exchange.answer, messages)
    except BackendError:
        failed = True
    except (DecodeError, ValueError, RecursionError) as error:
        raise SettingsError(_unreadable(exchange, "response", method.response, carrier)) from error
    return view(exchange, messages, failed)


def with_failures(
    schema: DescriptorSet, method: str, carrier: str, exchanges: Sequence[RecordedExchange]
) -> list[RecordedExchange]:
    """Returns the exchanges; of a response that fails by the status of its carrier, the answer is known as an error.
    Raises SettingsError for a body that is no message."""
    found = Schema(schema).method(method)
    failed = [one.known is None and read_response(found, carrier, one).failed for one in exchanges]
    return [
        msgspec.structs.replace(one, known=KnownAnswer(error=KnownError())) if error else one
        for one, error in zip(exchanges, failed, strict=True)
    ]


def _collect(method: Method, carrier: str, body: bytes, messages: list[Any]) -> bool:
    """Appends the messages of a body, up to the one at which it fails. Returns whether the carrier told the end."""
    frames, kind = find_carrier(carrier, method).frames(_LARGEST), message_class(method.response)
    ended = False
    for read in (frames.feed(body), frames.end()):
        for frame in read:
            if isinstance(frame, bytes):
                messages.append(kind.FromString(frame))
            ended |= frame is END
    return ended


def _unreadable(exchange: RecordedExchange, part: str, kind: Any, carrier: str) -> str:
    return f"{exchange.name}: the {part} is no {kind.full_name} over {carrier!r}"


def methods_of(schema: DescriptorSet) -> tuple[str, ...]:
    """Returns the methods of a schema as `package.Service/Method`. Raises OptionError for one that cannot be loaded."""
    return Schema(schema).methods()


def fitting_methods(
    schema: DescriptorSet, carrier: str | None, exchanges: Sequence[RecordedExchange]
) -> list[tuple[str, str]]:
    """Returns the methods of a schema, each with a carrier, of which all exchanges can be: their bodies are messages of
    its types without unknown fields. `carrier`: only this one; None: any. Raises OptionError for a schema that cannot
    be loaded."""
    loaded = Schema(schema)
    names = [carrier] if carrier is not None else [*CARRIERS]
    return [
        (written, name)
        for written in loaded.methods()
        for name in names
        if _reads_all(loaded.method(written), name, exchanges)
    ]


def _reads_all(method: Method, carrier: str, exchanges: Sequence[RecordedExchange]) -> bool:
    try:
        return all(_reads(method, carrier, exchange) for exchange in exchanges)
    except (SettingsError, OptionError):
        return False


def _reads(method: Method, carrier: str, exchange: RecordedExchange) -> bool:
    found = find_carrier(carrier, method)
    request = read_request(method, carrier, exchange)
    if not request.ListFields() or unknown_values(request) or found.write(found.read(exchange.body)) != exchange.body:
        return False
    messages: list[Message] = []
    try:
        ended = _collect(method, carrier, exchange.answer, messages)
    except (BackendProtocolError, BackendTruncated, DecodeError, ValueError, RecursionError):
        return False
    except BackendError:
        return not any(unknown_values(message) for message in messages)
    if (exchange.answer and not messages) or (len(messages) > 1 and not method.streams_responses):
        return False
    # A carrier with its own end tells it, over HTTP/2 the trailers do.
    told = ended or found.http2 or not found.reports_status or not exchange.answer
    return told and not any(unknown_values(message) for message in messages)


def write_request(schema: DescriptorSet, method: str, data: bytes) -> bytes:
    """Returns the body of a request of gRPC whose message is written as JSON. Raises OptionError for a method that does
    not exist, and InvalidRequest."""
    found = Schema(schema).method(method)
    messages = _from_json(found.request, data)
    if len(messages) != 1:
        raise InvalidRequest(f"it must be one {found.request.full_name}; there are {len(messages)}")
    return find_carrier(GRPC, found).write(messages[0].SerializeToString(deterministic=True))


def write_response(schema: DescriptorSet, method: str, data: bytes) -> bytes:
    """Returns the body of a response of gRPC whose messages are written as JSON, one behind the other or in a list.
    Raises OptionError for a method that does not exist, and InvalidRequest."""
    found = Schema(schema).method(method)
    messages = (message.SerializeToString() for message in _from_json(found.response, data))
    return b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)


def _from_json(kind: Any, data: bytes) -> list[Message]:
    try:
        return [ParseDict(one, message_class(kind)()) for one in _documents(data.decode())]
    except (ValueError, ParseError, RecursionError) as error:
        raise InvalidRequest(f"it is no {kind.full_name} in the JSON form of protobuf: {error}") from error


def _documents(text: str) -> list[Any]:
    """Returns the JSON values that stand one behind the other, those of a list one by one."""
    decoder = json.JSONDecoder()
    found: list[Any] = []
    at = 0
    while rest := text[at:].lstrip(" \t\r\n,"):
        value, size = decoder.raw_decode(rest)
        at = len(text) - len(rest) + size
        found += value if isinstance(value, list) else [value]
    return found
