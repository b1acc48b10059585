"""Defines the faults of HTTP/2 below gRPC: resets, GOAWAY, and frames that no server may send.

Source: RFC 9113, sections 4.1 (the form of a frame), 6 (its types) and 7 (error codes).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from adapters.proto.demo.answer import Answer
from adapters.proto.demo.response import GRPC, complete, frame, frames, message
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults, instead, megabytes
from gateway.demo.player.playback import Frames, Part, Reset, Response, Wait

_DATA, _HEADERS, _SETTINGS, _PING, _GO_AWAY, _CONTINUATION = 0, 1, 4, 6, 7, 9
_END_STREAM, _END_HEADERS = 1, 4
_REFUSED_STREAM: Final = 7
_ENHANCE_YOUR_CALM: Final = 11
_INADEQUATE_SECURITY: Final = 12
_LARGEST_FRAME: Final = 16_384
# One header of HPACK, as a literal that no table keeps: x: y.
_HEADER: Final = b"\x00\x01x\x01y"


def _reset_first(_: Answer, options: Options) -> Response:
    return _headless(Reset(int(options["code"])))


def _continuations(_: Answer, options: Options) -> Response:
    count = int(options["count"])
    return _headless(
        Frames(lambda stream: _frame(_HEADERS, stream, _HEADER) + _frame(_CONTINUATION, stream, _HEADER) * count),
        Wait(),
    )


def _large_trailers(answer: Answer, options: Options) -> Response:
    trailers = _HEADER * int(options["count"])
    last = Frames(lambda stream: _frame(_HEADERS, stream, trailers, _END_STREAM | _END_HEADERS))
    return Response((*frames(answer), last, Wait()), headers=GRPC)


def _over_window(_: Answer, options: Options) -> Frames:
    count = megabytes(options) // _LARGEST_FRAME
    return Frames(lambda stream: _frame(_DATA, stream, bytes(_LARGEST_FRAME)) * count)


def _pings(answer: Answer, options: Options) -> Response:
    """Sends a ping and an empty DATA frame behind each message."""
    between = Frames(lambda stream: _frame(_PING, 0, b"demoping") + _frame(_DATA, stream, b""))
    parts = tuple(part for found in frames(answer) for part in (found, between))
    return msgspec.structs.replace(complete(answer), parts=parts)


def _headless(*parts: Part) -> Response:
    """Builds a response of which the head is never sent."""
    return Response(parts, headers=GRPC)


def _flood(about: str, write: Callable[[int], bytes]) -> Fault[Answer]:
    def flood(_: Answer, options: Options) -> Frames:
        count = int(options["count"])
        return Frames(lambda stream: write(stream) * count)

    return WIRE.inserted(about, "flood", flood, count="100000")


def _frame(kind: int, stream: int, payload: bytes, flags: int = 0) -> bytes:
    """Encodes a frame."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + _number(stream) + payload


def _number(number: int) -> bytes:
    return number.to_bytes(4, "big")


WIRE: Final = WireFaults[Answer]("grpc", complete, lambda answer, text: frame(message(answer, text=text)))
_LEAVING: Final = Frames(lambda stream: _frame(_GO_AWAY, 0, _number(stream) + _number(0)))
_LEFT: Final = Frames(lambda _: _frame(_GO_AWAY, 0, _number(0) + _number(0)))

HTTP2_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    "reset": WIRE.ended("RST_STREAM in the middle", "reset", lambda _, options: Reset(int(options["code"])), code="2"),
    "reset_first": Fault("RST_STREAM instead of a head", "reset", options={"code": "2"}, plays=_reset_first),
    "refused": instead("REFUSED_STREAM, each time", "refused", _headless(Reset(_REFUSED_STREAM))),
    "calm": instead("ENHANCE_YOUR_CALM instead of a head", "calm", _headless(Reset(_ENHANCE_YOUR_CALM))),
    "insecure": instead("INADEQUATE_SECURITY instead of a head", "insecure", _headless(Reset(_INADEQUATE_SECURITY))),
    "go_away": WIRE.inserted("GOAWAY in the middle, and the rest of the answer", "", lambda *_: _LEAVING),
    "go_away_first": instead("GOAWAY that excludes the request, each time", "refused", _headless(_LEFT, Wait())),
    "continuations": Fault(
        "a head of many CONTINUATION frames", "head_too_large", options={"count": "100000"}, plays=_continuations
    ),
    "large_trailers": Fault(
        "trailers of many fields", "trailers_too_large", options={"count": "3000"}, plays=_large_trailers
    ),
    "ping_flood": _flood("a flood of pings in the middle", lambda _: _frame(_PING, 0, b"demoping")),
    "settings_flood": _flood("a flood of SETTINGS frames", lambda _: _frame(_SETTINGS, 0, b"")),
    "data_flood": _flood("a flood of empty DATA frames", lambda stream: _frame(_DATA, stream, b"")),
    "over_window": WIRE.inserted("more data than the client's window allows", "broken_frames", _over_window, mb="1"),
    "pings": Fault("a ping and an empty DATA frame behind each message", "comments", plays=_pings),
}
