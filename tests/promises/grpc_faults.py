"""Builds the faults that only a backend over gRPC can have, as scripts of a server whose every frame is decided."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from h2.errors import ErrorCodes
from h2.events import RequestReceived
from h2.settings import SettingCodes

from gateway.core.conversation import Json
from tests.adapters.proto.backend.mappings import PARTS
from tests.adapters.proto.backend.services import answer, envelope
from tests.server.upstream.http2.peer import HEAD, OK, Fields, Peer, Script, frame

ENTRY: Final[Mapping[str, Json]] = {"adapter": "proto", **PARTS, "carrier": "grpc"}
BEGIN: Final = envelope(answer("parts", {"parts": [{"text": "one "}]}))
TEXT: Final = envelope(answer("parts", {"parts": [{"text": "two "}]}))
END: Final = envelope(answer("parts", {"ended": {"fully": {}}}))
# Long enough for the gateway to read one piece before the next is sent.
PAUSE_S: Final = 0.04

UNAVAILABLE: Final = (("grpc-status", "14"), ("grpc-message", "try%20again"))
# A literal header that no table keeps, x: y.
FIELD: Final = b"\x00\x01x\x01y"
GOAWAY: Final = 7


class GrpcFault(msgspec.Struct, frozen=True):
    """Plays the fault on a stream. `in_body`: after the head, and perhaps the first text. `settings` are those of the
    backend; None: it sends none. `whole`: it waits for the whole request."""

    play: Callable[[Peer, int], None]
    in_body: bool = False
    settings: Mapping[SettingCodes, int] | None = {}
    whole: bool = True

    def script(self, begun: bool) -> Script:
        """`begun`: after the first text."""

        async def script(peer: Peer) -> None:
            if self.settings is None:
                self.play(peer, 0)
                await peer.closed()
                return
            peer.greet(self.settings)
            while True:
                stream = await peer.request() if self.whole else (await peer.next(RequestReceived)).stream_id
                if begun or self.in_body:
                    peer.begin(stream)
                if begun:
                    peer.data(stream, BEGIN)
                    await asyncio.sleep(PAUSE_S)
                self.play(peer, stream)
                peer.flush()

        return script


def _nothing(peer: Peer, stream: int) -> None:
    pass


def _raw(write: Callable[[int], bytes]) -> Callable[[Peer, int], None]:
    return lambda peer, stream: peer.raw(write(stream))


def _body(data: bytes) -> GrpcFault:
    return GrpcFault(lambda peer, stream: peer.data(stream, data), in_body=True)


def _in_body(*write: Callable[[int], bytes]) -> dict[str, GrpcFault]:
    return {f"number {number}": GrpcFault(_raw(one), in_body=True) for number, one in enumerate(write)}


def _ends(trailers: Fields, data: bytes = TEXT) -> GrpcFault:
    def play(peer: Peer, stream: int) -> None:
        peer.data(stream, data)
        peer.end(stream, trailers)

    return GrpcFault(play, in_body=True)


def _closes(peer: Peer, stream: int) -> None:
    peer.data(stream, TEXT + END)
    peer.state.end_stream(stream)


def _reset(code: ErrorCodes) -> GrpcFault:
    return GrpcFault(lambda peer, stream: peer.reset(stream, code))


def _goes_away(code: ErrorCodes) -> GrpcFault:
    return GrpcFault(_raw(lambda _: frame(GOAWAY, payload=bytes(4) + code.to_bytes(4, "big"))))


def _head(fields: Fields) -> GrpcFault:
    return GrpcFault(lambda peer, stream: peer.begin(stream, (*HEAD, *fields)))


LARGE: Final = tuple((f"x-{number}", "y" * 1200) for number in range(60))
MANY: Final = tuple((f"x-{number}", "y") for number in range(130))
FLOOD: Final = 1000
GRPC_FAULTS_BY_KIND: Final[Mapping[str, Mapping[str, GrpcFault]]] = {
    "not_http2": {
        "HTTP/1.1": GrpcFault(_raw(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"), settings=None),
    },
    "no_settings": {"silence": GrpcFault(_nothing, settings=None)},
    "no_window": {
        "a closed window": GrpcFault(_nothing, settings={SettingCodes.INITIAL_WINDOW_SIZE: 0}, whole=False),
    },
    "refused": {
        "REFUSED_STREAM": _reset(ErrorCodes.REFUSED_STREAM),
        "GOAWAY": _goes_away(ErrorCodes.NO_ERROR),
    },
    "calm": {
        "RST_STREAM": _reset(ErrorCodes.ENHANCE_YOUR_CALM),
        "GOAWAY": _goes_away(ErrorCodes.ENHANCE_YOUR_CALM),
    },
    "insecure": {
        "RST_STREAM": _reset(ErrorCodes.INADEQUATE_SECURITY),
        "GOAWAY": _goes_away(ErrorCodes.INADEQUATE_SECURITY),
    },
    "reset": {
        code.name: _reset(code)
        for code in ErrorCodes
        if code.name not in ("REFUSED_STREAM", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY")
    },
    "head_too_large": {
        "bytes": _head(LARGE),
        "fields": _head(MANY),
        "CONTINUATION": GrpcFault(_raw(lambda stream: frame(1, stream, FIELD) + frame(9, stream, FIELD) * 9)),
    },
    "trailers_too_large": {"bytes": _ends((*OK, *LARGE)), "fields": _ends((*OK, *MANY))},
    "broken_frames": _in_body(
        lambda _: b"what is this\r\n\r\n",
        lambda stream: frame(9, stream, FIELD),
        # Far over the window: what the gateway reads meanwhile widens it.
        lambda stream: frame(0, stream, bytes(2**14)) * 64,
        lambda _: frame(8, payload=b"\x7f\xff\xff\xff") * 2,
        lambda stream: frame(1, stream, FIELD, 4),
        lambda _: frame(6, payload=b"short"),
    ),
    "flood": _in_body(
        lambda _: frame(6, payload=bytes(8)) * FLOOD,
        lambda _: frame(4) * FLOOD,
        lambda stream: frame(3, stream + 2, bytes(4)) * FLOOD,
        lambda stream: frame(0, stream) * FLOOD,
        lambda _: frame(99, payload=b"x") * FLOOD,
    ),
    "status_alone": {"UNAVAILABLE": GrpcFault(lambda peer, stream: peer.end(stream, (*HEAD, *UNAVAILABLE)))},
    "status_late": {"UNAVAILABLE": _ends(UNAVAILABLE), "behind the finish": _ends(UNAVAILABLE, TEXT + END)},
    "no_status": {"no trailers": GrpcFault(_closes, in_body=True), "other trailers": _ends((("x", "y"),), TEXT + END)},
    "half_message": {"half": _ends(OK, TEXT[:-2])},
    "forged_status": {"OK": _body(envelope(b"grpc-status: 0\r\n", 0x80))},
    "compressed_message": {"gzip": _body(envelope(b"x", 1))},
    "message_too_large": {"two gigabytes": _body(b"\0\x7f\xff\xff\xff")},
}
