"""Defines the carriers: how HTTP holds the request's message and the messages of the response."""

import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast, get_args

import msgspec

from adapters.proto.backend.frames import (
    ConnectFrames,
    FramesFactory,
    GrpcFrames,
    GrpcWebFrames,
    GrpcWebTextFrames,
    SSEBase64Frames,
    U32Frames,
    VarintFrames,
    WholeBody,
)
from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.schema import Method
from gateway.adapter import TimeoutHeader

CarrierName = Literal[
    "body", "frames_varint", "frames_u32", "sse_base64", "grpc", "grpc_web", "grpc_web_text", "connect"
]
_PROTOBUF: Final = ("application/x-protobuf", "application/protobuf", "application/octet-stream")
_IDENTITY: Final = {"accept-encoding": "identity"}


def _bare(message: bytes) -> bytes:
    return message


def _envelope(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def _open(body: bytes) -> bytes:
    return body[5:]


class Carrier(msgspec.Struct, frozen=True):
    """How one call is sent and answered.

    `write` makes the body from the request's message, and `read` is its inverse. `frames` creates the decoder of the
    response, given the largest message. `reports_status`: a response is complete only with its status. `one`: the
    response is one message, which ends with the body. `http2`: the call goes over HTTP/2, and its status is in the
    trailers. `deadline` names the header with the time that the backend has left.
    """

    frames: FramesFactory
    accepts: tuple[str, ...]
    headers: Mapping[str, str]
    write: Callable[[bytes], bytes] = _bare
    read: Callable[[bytes], bytes] = _bare
    reports_status: bool = False
    one: bool = False
    http2: bool = False
    deadline: TimeoutHeader | None = None


def _encode_text(message: bytes) -> bytes:
    return binascii.b2a_base64(_envelope(message), newline=False)


def _decode_text(body: bytes) -> bytes:
    return _open(binascii.a2b_base64(body))


def _plain(frames: FramesFactory, accepts: tuple[str, ...], one: bool = False) -> Carrier:
    headers = {"content-type": _PROTOBUF[0], "accept": accepts[0], **_IDENTITY}
    return Carrier(frames, accepts, headers, one=one)


def _grpc_web(kind: str, frames: FramesFactory) -> dict[str, Any]:
    accepts = (f"application/{kind}+proto", f"application/{kind}")
    headers = {"content-type": accepts[0], "accept": accepts[0], "x-grpc-web": "1", **_IDENTITY}
    return {
        "frames": frames,
        "accepts": accepts,
        "headers": headers,
        "reports_status": True,
        "deadline": "grpc-timeout",
    }


def _connect(kind: str) -> dict[str, str]:
    return {"content-type": kind, "accept": kind, "connect-protocol-version": "1", **_IDENTITY}


_GRPC: Final = ("application/grpc+proto", "application/grpc")
_STREAM: Final = "application/connect+proto"
_UNARY: Final = "application/proto"
CONNECT_UNARY: Final = Carrier(WholeBody, (_UNARY,), _connect(_UNARY), one=True, deadline="connect-timeout-ms")
CARRIERS: Final[Mapping[CarrierName, Carrier]] = {
    "body": _plain(WholeBody, _PROTOBUF, one=True),
    "frames_varint": _plain(VarintFrames, _PROTOBUF),
    "frames_u32": _plain(U32Frames, _PROTOBUF),
    "sse_base64": _plain(SSEBase64Frames, ("text/event-stream",)),
    "grpc": Carrier(
        GrpcFrames,
        _GRPC,
        {"content-type": _GRPC[0], "grpc-accept-encoding": "identity"},
        _envelope,
        _open,
        reports_status=True,
        http2=True,
        deadline="grpc-timeout",
    ),
    "grpc_web": Carrier(**_grpc_web("grpc-web", GrpcWebFrames), write=_envelope, read=_open),
    "grpc_web_text": Carrier(**_grpc_web("grpc-web-text", GrpcWebTextFrames), write=_encode_text, read=_decode_text),
    "connect": Carrier(
        ConnectFrames,
        (_STREAM,),
        _connect(_STREAM),
        _envelope,
        _open,
        reports_status=True,
        deadline="connect-timeout-ms",
    ),
}


def find_carrier(name: str, method: Method) -> Carrier:
    """Returns the carrier of a method. Raises OptionError for a name that does not exist, and for a method that the
    carrier cannot call."""
    if name not in get_args(CarrierName):
        raise unknown_name("carrier", f"there is no carrier {name!r}", name, CARRIERS)
    streams = method.streams_requests or method.streams_responses
    if name == "connect" and not streams:
        return CONNECT_UNARY
    carrier = CARRIERS[cast(CarrierName, name)]
    if carrier.one and streams:
        raise mapping_error("carrier", f"{name!r} carries one message, but {method.path[1:]} streams")
    return carrier
