"""Defines the faults of HTTP/2 below gRPC: resets, GOAWAY, and frames that no server may send.

Source: RFC 9113, sections 4.1 (the form of a frame), 6 (its types) and 7 (error codes).
"""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.demo.grpc.answer import Answer
from gateway.demo.grpc.response import GRPC, OK, complete, frames
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Frames, Part, Reset, Response, Wait
from gateway.demo.player.stream_faults import StreamFaults

_DATA, _HEADERS, _SETTINGS, _PING, _GO_AWAY, _CONTINUATION = 0, 1, 4, 6, 7, 9
_END_STREAM, _END_HEADERS = 1, 4
_REFUSED_STREAM: Final = 7
_ENHANCE_YOUR_CALM: Final = 11
_INADEQUATE_SECURITY: Final = 12
_LARGEST_FRAME: Final = 16_384
# One header of HPACK, as a literal that no table keeps: x: y.
_HEADER: Final = b"\x00\x01x\x01y"

_STREAM: Final = StreamFaults[Answer](frames, after=3)


def _reset(answer: Answer, options: Options) -> Response:
    return Response((*_STREAM.begun(answer, options), Reset(int(options.get("code", "2")))), headers=GRPC)


def _reset_first(_: Answer, options: Options) -> Response:
    return _instead(Reset(int(options.get("code", "2"))))


def _refused(_: Answer, options: Options) -> Response:
    return _instead(Reset(_REFUSED_STREAM))


def _calm(_: Answer, options: Options) -> Response:
    return _instead(Reset(_ENHANCE_YOUR_CALM))


def _insecure(_: Answer, options: Options) -> Response:
    return _instead(Reset(_INADEQUATE_SECURITY))


def _go_away(answer: Answer, options: Options) -> Response:
    return _inside(answer, options, lambda stream: _frame(_GO_AWAY, 0, _number(stream) + _number(0)))


def _go_away_first(_: Answer, options: Options) -> Response:
    return _instead(Frames(lambda _: _frame(_GO_AWAY, 0, _number(0) + _number(0))), Wait())


def _continuations(_: Answer, options: Options) -> Response:
    count = int(options.get("count", "100000"))
    return _instead(
        Frames(lambda stream: _frame(_HEADERS, stream, _HEADER) + _frame(_CONTINUATION, stream, _HEADER) * count),
        Wait(),
    )


def _large_trailers(answer: Answer, options: Options) -> Response:
    trailers = _HEADER * int(options.get("count", "3000"))
    last = Frames(lambda stream: _frame(_HEADERS, stream, trailers, _END_STREAM | _END_HEADERS))
    return Response((*frames(answer), last, Wait()), headers=GRPC)


def _ping_flood(answer: Answer, options: Options) -> Response:
    return _flood(answer, options, lambda _: _frame(_PING, 0, b"demoping"))


def _settings_flood(answer: Answer, options: Options) -> Response:
    return _flood(answer, options, lambda _: _frame(_SETTINGS, 0, b""))


def _data_flood(answer: Answer, options: Options) -> Response:
    return _flood(answer, options, lambda stream: _frame(_DATA, stream, b""))


def _over_window(answer: Answer, options: Options) -> Response:
    count = int(float(options.get("mb", "1")) * 2**20) // _LARGEST_FRAME
    return _inside(answer, options, lambda stream: _frame(_DATA, stream, bytes(_LARGEST_FRAME)) * count)


def _pings(answer: Answer, options: Options) -> Response:
    """Send a ping and an empty DATA frame behind each message."""
    between = Frames(lambda stream: _frame(_PING, 0, b"demoping") + _frame(_DATA, stream, b""))
    parts = tuple(part for found in frames(answer) for part in (found, between))
    return msgspec.structs.replace(complete(answer), parts=parts)


HTTP2_FAULTS: Final = {
    "reset": DemoFault("RST_STREAM in the middle: after=3, code=2", _reset, "reset"),
    "reset_first": DemoFault("RST_STREAM instead of a head: code=2", _reset_first, "reset"),
    "refused": DemoFault("REFUSED_STREAM, each time", _refused, "refused"),
    "calm": DemoFault("ENHANCE_YOUR_CALM instead of a head", _calm, "calm"),
    "insecure": DemoFault("INADEQUATE_SECURITY instead of a head", _insecure, "insecure"),
    "go_away": DemoFault("GOAWAY in the middle, and the rest of the answer: after=3", _go_away),
    "go_away_first": DemoFault("GOAWAY that excludes the request, each time", _go_away_first, "refused"),
    "continuations": DemoFault("a head of many CONTINUATION frames: count=100000", _continuations, "head_too_large"),
    "large_trailers": DemoFault("trailers of many fields: count=3000", _large_trailers, "trailers_too_large"),
    "ping_flood": DemoFault("a flood of pings in the middle: after=3, count=100000", _ping_flood, "flood"),
    "settings_flood": DemoFault("a flood of SETTINGS frames: after=3, count=100000", _settings_flood, "flood"),
    "data_flood": DemoFault("a flood of empty DATA frames: after=3, count=100000", _data_flood, "flood"),
    "over_window": DemoFault("more data than the client's window allows: after=3, mb=1", _over_window, "broken_frames"),
    "pings": DemoFault("a ping and an empty DATA frame behind each message", _pings, "comments"),
}


def _instead(*parts: Part) -> Response:
    """Build a response of which the head is never sent."""
    return Response(parts, headers=GRPC)


def _inside(answer: Answer, options: Options, write: Callable[[int], bytes]) -> Response:
    """Build the answer with these frames in its middle."""
    around = _STREAM.around(answer, options, Frames(write))
    return msgspec.structs.replace(around, headers=GRPC, trailers=OK)


def _flood(answer: Answer, options: Options, write: Callable[[int], bytes]) -> Response:
    count = int(options.get("count", "100000"))
    return _inside(answer, options, lambda stream: write(stream) * count)


def _frame(kind: int, stream: int, payload: bytes, flags: int = 0) -> bytes:
    """Encode a frame."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + _number(stream) + payload


def _number(number: int) -> bytes:
    return number.to_bytes(4, "big")
