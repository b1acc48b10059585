"""Defines the faults of the gRPC wire: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Final

import msgspec
from google.protobuf.duration_pb2 import Duration

from adapters.proto.status_details_pb2 import RetryInfo
from gateway.demo.grpc import generation_pb2 as pb
from gateway.demo.grpc.answer import Answer
from gateway.demo.grpc.http2_faults import HTTP2_FAULTS
from gateway.demo.grpc.response import (
    GRPC,
    INTERNAL,
    INVALID_ARGUMENT,
    OK,
    RESOURCE_EXHAUSTED,
    UNAUTHENTICATED,
    UNAVAILABLE,
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
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Cut, Part, Response, Wait
from gateway.demo.player.stream_faults import StreamFaults

_STREAM: Final = StreamFaults[Answer](frames, after=3)
# Field 2, the detail, which no client may see.
_DEBUG_INFO: Final = b"\x12\x0fnot for clients"
# Field 1999: length-delimited, empty.
_UNKNOWN: Final = b"\xfa\x7c\x00"


def _status(_: Answer, options: Options) -> Response:
    code = int(options.get("code", str(INTERNAL)))
    pushback = {"grpc-retry-pushback-ms": wait} if (wait := options.get("retry_ms")) else {}
    return failed(code, f"The demo backend was asked to answer {code}.", pushback)


def _unavailable(_: Answer, options: Options) -> Response:
    return failed(UNAVAILABLE, "The model is overloaded. Please try again later.")


def _quota(_: Answer, options: Options) -> Response:
    text = "Too many requests: wait before the next one."
    delay = RetryInfo(retry_delay=Duration(seconds=7)).SerializeToString()
    found = {"RetryInfo": delay, "DebugInfo": _DEBUG_INFO}
    return failed(RESOURCE_EXHAUSTED, text, details(RESOURCE_EXHAUSTED, text, found))


def _wrong_key(_: Answer, options: Options) -> Response:
    return failed(UNAUTHENTICATED, "The key is not valid.")


def _context_length(_: Answer, options: Options) -> Response:
    return failed(INVALID_ARGUMENT, "This model's maximum context length is 8 tokens.")


def _status_late(answer: Answer, options: Options) -> Response:
    code = int(options.get("code", str(UNAVAILABLE)))
    return Response(tuple(_STREAM.begun(answer, options)), headers=GRPC, trailers=status(code, "The model broke down."))


def _status_last(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer), trailers=status(UNAVAILABLE, "The model broke down."))


def _no_status(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer), trailers=None)


def _held_open(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer), Wait())


def _forged_status(answer: Answer, options: Options) -> Response:
    return _around(answer, options, envelope(b"grpc-status: 0\r\n", 0x80))


def _no_finish(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer)[:-1])


def _half_message(answer: Answer, options: Options) -> Response:
    return _played(*_STREAM.begun(answer, options), frame(last(answer))[:-3])


def _compressed(answer: Answer, options: Options) -> Response:
    return _around(answer, options, envelope(message(answer, text="squeezed").SerializeToString(), 1))


def _bad_message(answer: Answer, options: Options) -> Response:
    return _around(answer, options, envelope(b"\x0a\xff\xff\xff\xff"))


def _bad_utf8(answer: Answer, options: Options) -> Response:
    broken = frame(message(answer, text="(?)")).replace(b"(?)", b"(\xff)")
    return _around(answer, options, broken)


def _endless_message(answer: Answer, options: Options) -> Response:
    return _around(answer, options, b"\x00\xff\xff\xff\xff")


def _huge_message(answer: Answer, options: Options) -> Response:
    size = int(float(options.get("mb", "8")) * 1024 * 1024)
    return _around(answer, options, frame(message(answer, text="x" * size)))


def _failed(answer: Answer, options: Options) -> Response:
    return _played(*_STREAM.begun(answer, options), frame(last(answer, "FINISH_FAILED")))


def _filtered(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer)[:-1], frame(last(answer, "FINISH_FILTERED")))


def _lost_call(answer: Answer, options: Options) -> Response:
    nameless = message(answer, call=pb.ToolCall(id="call_1"))
    return _played(frame(nameless), frame(last(answer, "FINISH_TOOL_CALLS")))


def _double_finish(answer: Answer, options: Options) -> Response:
    return _played(*frames(answer), frame(message(answer, text=" (late)")), frame(last(answer)))


def _unknown_fields(answer: Answer, options: Options) -> Response:
    return _played(*[envelope(found.SerializeToString() + _UNKNOWN) for found in messages(answer)])


def _unknown_content(answer: Answer, options: Options) -> Response:
    return _around(answer, options, envelope(_UNKNOWN))


def _by_grpc(fault: DemoFault[Answer]) -> DemoFault[Answer]:
    """Carry the fault of a stream over gRPC, with a status behind a response that is not cut."""

    def play(answer: Answer, options: Options) -> Response:
        played = fault.play(answer, options)
        if dict(played.headers).get("content-type") != "text/event-stream":
            return played
        cut = any(isinstance(part, Cut) for part in played.parts)
        return msgspec.structs.replace(played, headers=GRPC, trailers=None if cut else OK)

    return msgspec.structs.replace(fault, play=play)


FAULTS: Final[Mapping[str, DemoFault[Answer]]] = {
    **{name: _by_grpc(fault) for name, fault in _STREAM.faults().items()},
    "held_open": DemoFault("a complete answer without a status, on a stream that stays open", _held_open, "stall"),
    "status": DemoFault("a status instead of an answer: code=13, retry_ms=", _status, "500"),
    "unavailable": DemoFault("UNAVAILABLE", _unavailable, "status_alone"),
    "quota": DemoFault("RESOURCE_EXHAUSTED with a `RetryInfo` in its details", _quota, "429"),
    "wrong_key": DemoFault("UNAUTHENTICATED", _wrong_key, "credential"),
    "context_length": DemoFault("INVALID_ARGUMENT because the prompt is too long", _context_length, "400"),
    "status_late": DemoFault("a status in the middle: after=3, code=14", _status_late, "status_late"),
    "status_last": DemoFault("the status UNAVAILABLE behind a complete answer", _status_last, "status_late"),
    "no_status": DemoFault("a complete answer without trailers", _no_status, "no_status"),
    "forged_status": DemoFault("a status in the body: after=3", _forged_status, "forged_status"),
    "no_finish": DemoFault("the status OK without a finish", _no_finish, "no_finish"),
    "half_message": DemoFault("the status OK inside a message: after=3", _half_message, "half_message"),
    "compressed_message": DemoFault(
        "a message whose flag says that it is compressed: after=3", _compressed, "compressed_message"
    ),
    "bad_message": DemoFault("a message that is no protobuf: after=3", _bad_message, "malformed"),
    "bad_utf8": DemoFault("a message with a broken UTF-8 byte: after=3", _bad_utf8, "utf8"),
    "endless_message": DemoFault("a message with a length of 4 GiB: after=3", _endless_message, "message_too_large"),
    "huge_message": DemoFault("one very large message: mb=8, after=3", _huge_message, "message_too_large"),
    "failed": DemoFault("the finish FINISH_FAILED: after=3", _failed, "truncated"),
    "content_filter": DemoFault("an answer that a filter ended", _filtered, finish="content_filter"),
    "lost_call": DemoFault("a call without a name", _lost_call, "lost_call"),
    "double_finish": DemoFault("text and a second finish after the finish", _double_finish, "twice"),
    "unknown_fields": DemoFault("messages with unknown fields", _unknown_fields, "unknown"),
    "unknown_content": DemoFault("a message with nothing but an unknown field: after=3", _unknown_content, "unknown"),
    **HTTP2_FAULTS,
}


def _around(answer: Answer, options: Options, found: bytes) -> Response:
    """Build the answer with these bytes in its middle."""
    return msgspec.structs.replace(_STREAM.around(answer, options, found), headers=GRPC, trailers=OK)


def _played(*parts: Part, trailers: Mapping[str, str] | None = OK) -> Response:
    return Response(parts, headers=GRPC, trailers=trailers)
