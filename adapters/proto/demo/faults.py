"""Defines the faults of the gRPC wire: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from google.protobuf.duration_pb2 import Duration

from adapters.proto.demo import generation_pb2 as pb
from adapters.proto.demo.answer import Answer
from adapters.proto.demo.http2_faults import HTTP2_FAULTS, WIRE
from adapters.proto.demo.response import (
    GRPC,
    INVALID_ARGUMENT,
    OK,
    RESOURCE_EXHAUSTED,
    UNAUTHENTICATED,
    UNAVAILABLE,
    complete,
    details,
    envelope,
    failed,
    frame,
    frames,
    last,
    message,
    messages,
    status,
)
from adapters.proto.status_details_pb2 import RetryInfo
from gateway.demo.faults.editing import Options, begun
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import instead
from gateway.demo.player.playback import Part, Response

# Field 2, the detail, which no client may see.
_DEBUG_INFO: Final = b"\x12\x0fnot for clients"
# Field 1999: length-delimited, empty.
_UNKNOWN: Final = b"\xfa\x7c\x00"


def _status(_: Answer, options: Options) -> Response:
    code = int(options["code"])
    pushback = {"grpc-retry-pushback-ms": wait} if (wait := options["retry_ms"]) else {}
    return failed(code, f"The demo backend was asked to answer {code}.", pushback)


def _status_late(answer: Answer, options: Options) -> Response:
    code = int(options["code"])
    late = status(code, "The model broke down.")
    return msgspec.structs.replace(begun(complete(answer), options), trailers=late)


def _status_last(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer), trailers=status(UNAVAILABLE, "The model broke down."))


def _no_status(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer), trailers=None)


def _no_finish(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer)[:-1])


def _filtered(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer)[:-1], frame(last(answer, "FINISH_FILTERED")))


def _lost_call(answer: Answer, options: Options) -> Response:
    nameless = message(answer, call=pb.ToolCall(id="call_1"))
    return _played(frame(nameless), frame(last(answer, "FINISH_TOOL_CALLS")))


def _double_finish(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer), frame(message(answer, text=" (late)")), frame(last(answer)))


def _unknown_fields(answer: Answer, options: Options) -> Response:
    return _played(*[envelope(found.SerializeToString() + _UNKNOWN) for found in messages(answer)])


_QUOTA: Final = "Too many requests: wait before the next one."
_DETAILS: Final = {
    "RetryInfo": RetryInfo(retry_delay=Duration(seconds=7)).SerializeToString(),
    "DebugInfo": _DEBUG_INFO,
}

GRPC_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    "status": Fault("a status instead of an answer", "500", options={"code": "13", "retry_ms": ""}, plays=_status),
    "unavailable": instead(
        "UNAVAILABLE", "status_alone", failed(UNAVAILABLE, "The model is overloaded. Please try again later.")
    ),
    "quota": instead(
        "RESOURCE_EXHAUSTED with a `RetryInfo` in its details",
        "429",
        failed(RESOURCE_EXHAUSTED, _QUOTA, details(RESOURCE_EXHAUSTED, _QUOTA, _DETAILS)),
    ),
    "wrong_key": instead("UNAUTHENTICATED", "credential", failed(UNAUTHENTICATED, "The key is not valid.")),
    "context_length": instead(
        "INVALID_ARGUMENT because the prompt is too long",
        "400",
        failed(INVALID_ARGUMENT, "This model's maximum context length is 8 tokens."),
    ),
    "forged_status": WIRE.inserted(
        "a status in the body", "forged_status", lambda *_: envelope(b"grpc-status: 0\r\n", 0x80)
    ),
    "half_message": WIRE.ended(
        "the status OK inside a message", "half_message", lambda answer, _: frame(last(answer))[:-3]
    ),
    "compressed_message": WIRE.inserted(
        "a message whose flag says that it is compressed",
        "compressed_message",
        lambda answer, _: envelope(message(answer, text="squeezed").SerializeToString(), 1),
    ),
    "bad_message": WIRE.inserted(
        "a message that is no protobuf", "malformed", lambda *_: envelope(b"\x0a\xff\xff\xff\xff")
    ),
    "bad_utf8": WIRE.bad_utf8(),
    "endless_message": WIRE.inserted(
        "a message with a length of 4 GiB", "message_too_large", lambda *_: b"\x00\xff\xff\xff\xff"
    ),
    "huge_message": WIRE.huge("message_too_large"),
    "failed": WIRE.ended(
        "the finish FINISH_FAILED", "truncated", lambda answer, _: frame(last(answer, "FINISH_FAILED"))
    ),
    "unknown_content": WIRE.inserted(
        "a message with nothing but an unknown field", "unknown", lambda *_: envelope(_UNKNOWN)
    ),
    "status_late": Fault(
        "a status in the middle", "status_late", options={"after": "3", "code": "14"}, plays=_status_late
    ),
    "status_last": Fault("the status UNAVAILABLE behind a complete answer", "status_late", plays=_status_last),
    "no_status": Fault("a complete answer without trailers", "no_status", plays=_no_status),
    "no_finish": Fault("the status OK without a finish", "no_finish", plays=_no_finish),
    "content_filter": Fault("an answer that a filter ended", finish="content_filter", plays=_filtered),
    "lost_call": Fault("a call without a name", "lost_call", plays=_lost_call),
    "double_finish": Fault("text and a second finish after the finish", "twice", plays=_double_finish),
    "unknown_fields": Fault("messages with unknown fields", "unknown", plays=_unknown_fields),
    **HTTP2_FAULTS,
}


def _played(*parts: Part, trailers: Mapping[str, str] | None = OK) -> Response:
    return Response(parts, headers=GRPC, trailers=trailers)
