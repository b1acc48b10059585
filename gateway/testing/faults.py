"""Builds every fault of a backend as a script for the faulty backend, from the bytes of a valid response on its wire.

`FAULTS` names them, and `FAULTS_BY_KIND` has them below their kinds (`gateway.demo.faults.kinds`). The author of an
adapter defines a `ResponseEvents` and plays each fault before and after the first text.
"""

import asyncio
import itertools
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.demo.faults.fault import Fault
from gateway.demo.faults.responses import RESPONSES
from gateway.demo.faults.timing import TIMING
from gateway.demo.player.playback import FOREVER, Cut, Frames, Part, Reset, Response, Wait
from gateway.moved import renamed
from gateway.testing.faulty import END, Connection, FaultyBackend, Script, answer, chunk, faulty_backend, head

# Long enough for the gateway to read one piece before the next is sent.
PAUSE_S: Final = 0.04


class ResponseEvents(msgspec.Struct, frozen=True):
    """The parts of a wire's responses: whole events, as bytes.

    `begin` is the beginning of a response with a little text, `text` continues it, and `end` makes it complete.
    `failure` reports an error. `media_type` is that of the response; `lines` is true if events are lines, not
    server-sent events. `lost_call` is the end of a response that announces a tool call without making one; empty for a
    wire without calls. `start` is the part of `begin` without which the wire has no text, empty where there is none.
    """

    media_type: str
    begin: bytes
    text: bytes
    end: bytes
    failure: bytes
    lines: bool = False
    lost_call: bytes = b""
    start: bytes = b""

    @property
    def answer(self) -> bytes:
        """A complete response."""
        return self.begin + self.text + self.end

    @property
    def malformed(self) -> bytes:
        """A whole event that is invalid on every wire."""
        return b"\xff{no event\n" if self.lines else b"data: \xff{no event\n\n"

    @property
    def silence(self) -> bytes:
        """The bytes that a backend sends to keep a connection open."""
        return b"\n" if self.lines else b": still here\n\n"

    @property
    def opening(self) -> bytes:
        """The beginning of an event."""
        return b"" if self.lines else b"data: "


CLOSE: Final = Cut("fin")
RESET: Final = Cut("reset")
HOLD: Final = Wait()


class SocketFault(msgspec.Struct, frozen=True):
    """Sends `parts` on the socket: bytes, pauses, and the end of the connection; without an end it waits for the next
    request.

    `in_body`: the parts belong to the body of a 200, so that the fault may also come after the first text. Without
    `listens` the port is closed. `tls`: the address says https, and the parts are the response to the first bytes of
    the handshake.
    """

    parts: Callable[[ResponseEvents], Iterable[Part]]
    in_body: bool = False
    listens: bool = True
    tls: bool = False

    def script(self, events: ResponseEvents, begun: bool = False) -> Script:
        """Builds the script of the fault on this wire; `begun`: after the first text (only for a fault in the body)."""

        async def play(connection: Connection) -> None:
            if self.in_body:
                await connection.send(head(events.media_type))
                await asyncio.sleep(PAUSE_S)
            if begun:
                await connection.send(chunk(events.begin))
                await asyncio.sleep(PAUSE_S)
            for part in self.parts(msgspec.structs.replace(events, start=b"") if begun else events):
                await _send(connection, part)
                if isinstance(part, Cut):
                    return

        return play


async def _send(connection: Connection, part: Part) -> None:
    match part:
        case bytes():
            await connection.send(part)
            await asyncio.sleep(0)
        case Wait(seconds):
            await (connection.gone() if seconds >= FOREVER else asyncio.sleep(seconds))
        case Cut("reset"):
            connection.reset()
        case Cut():
            connection.close()
        case Reset() | Frames():
            raise ValueError(f"{part} is of HTTP/2")


@asynccontextmanager
async def playing(fault: SocketFault, events: ResponseEvents, begun: bool = False) -> AsyncIterator[FaultyBackend]:
    """Serves a backend with this fault until the block ends."""
    async with faulty_backend(fault.script(events, begun)) as backend:
        if fault.tls:
            backend.scheme = "https"
            backend.speaks_first = True
        if not fault.listens:
            async with faulty_backend(fault.script(events)) as closed:
                backend.port = closed.port
        yield backend


def _sent(*parts: Part) -> Callable[[ResponseEvents], Iterable[Part]]:
    return lambda _: parts


def _status(status: str, document: object = None, *headers: bytes) -> SocketFault:
    body = b"" if document is None else json.dumps(document).encode()
    return SocketFault(_sent(answer(status, body, b"content-type: application/json", *headers)))


def _page(status: str) -> SocketFault:
    return SocketFault(_sent(answer(status, b"<html><body>nginx says no</body></html>", b"content-type: text/html")))


def _typed(media_type: str, body: bytes) -> bytes:
    return answer("200 OK", body, b"content-type: " + media_type.encode())


def _body(parts: Callable[[ResponseEvents], Iterable[Part]]) -> SocketFault:
    return SocketFault(parts, in_body=True)


def listed(name: str, **options: str) -> SocketFault:
    """Returns a fault of the demo backends by its name in their catalogue and its options, for the body of a stream of
    two events, the text and the end. Raises ValueError for another name, or a fault that is not in a body."""
    if name not in IN_BODY:
        raise ValueError(f"there is no fault {name!r} in the body of a stream; there are {', '.join(IN_BODY)}")
    fault = IN_BODY[name].with_options(options)

    def parts(events: ResponseEvents) -> Iterable[Part]:
        played = fault.play(None, Response((events.start + events.text, events.end)))
        for part in (*played.parts, Cut("end")):
            yield _chunked(part)
            if isinstance(part, Cut):
                return

    return _body(parts)


def _is_in_body(fault: Fault[object]) -> bool:
    regular = Response((b"text", b"end"))
    played = fault.play(None, regular)
    return msgspec.structs.replace(played, parts=regular.parts) == regular != played


# The faults of the demo backends that change the body of a stream, and nothing else.
IN_BODY: Final[Mapping[str, Fault[object]]] = {
    name: fault for name, fault in {**RESPONSES, **TIMING}.items() if _is_in_body(fault)
}


def _chunked(part: Part) -> Part:
    match part:
        case bytes():
            return chunk(part)
        case Cut("end"):
            return END
        case _:
            return part


def _slowly(pieces: Iterable[bytes], seconds: float) -> Iterator[Part]:
    for piece in pieces:
        yield from (piece, Wait(seconds))


def _endless(
    piece: Callable[[ResponseEvents], bytes], first: Callable[[ResponseEvents], bytes] = lambda _: b""
) -> SocketFault:
    return _body(lambda events: itertools.chain([first(events)], itertools.repeat(chunk(piece(events)))))


@cache
def _packed(silence: bytes) -> bytes:
    """Builds a decompression bomb of keep-alive bytes, which no limit on the size of an event stops."""
    return zlib.compress(silence * (2**24 // len(silence)), wbits=31)


def coded(media_type: str, coding: str, body: bytes) -> bytes:
    """Builds a whole 200 with a body in this content coding."""
    return answer("200 OK", body, b"content-type: " + media_type.encode(), b"content-encoding: " + coding.encode())


def _bomb(events: ResponseEvents) -> Iterable[Part]:
    return coded(events.media_type, "gzip", _packed(events.silence)), CLOSE


def _cut_gzip(events: ResponseEvents) -> Iterable[Part]:
    """The framing is complete, the compressed bytes are not."""
    packed = zlib.compress(events.silence * 3, wbits=31)
    yield coded(events.media_type, "gzip", packed[:-4])


_ERROR_BODY: Final = {"error": {"message": "said by the backend", "code": "its_code"}}
_QUOTA: Final = {"error": {"message": "nothing left", "code": "insufficient_quota"}}
JSON: Final = "application/json"
_OK: Final = b"HTTP/1.1 200 OK\r\n"

FAULTS_BY_KIND: Final[Mapping[str, Mapping[str, SocketFault]]] = {
    "unreachable": {
        "the connection is refused": SocketFault(_sent(), listens=False),
    },
    "tls": {
        "no TLS where TLS is expected": SocketFault(_sent(b"no TLS here\r\n", CLOSE), tls=True),
    },
    "closed": {
        "it closes before the head": SocketFault(_sent(CLOSE)),
        "it resets before the head": SocketFault(_sent(RESET)),
        "it closes in the head": SocketFault(_sent(_OK + b"x: y", CLOSE)),
    },
    "no_http": {
        "garbage instead of a head": SocketFault(_sent(b"what is this\r\n\r\n", CLOSE)),
        "a flood of headers": SocketFault(
            _sent(_OK + b"".join(b"x-%d: y\r\n" % number for number in range(9000)) + b"\r\n", CLOSE)
        ),
        "a header without end": SocketFault(_sent(_OK + b"x: " + b"y" * 100_000 + b"\r\n\r\n", CLOSE)),
    },
    "no_head": {
        "silence before the head": SocketFault(_sent(HOLD)),
        "half a status line": SocketFault(_sent(b"HTTP/1.1 2", HOLD)),
        "a head that trickles": SocketFault(
            lambda _: (*_slowly((bytes([byte]) for byte in _OK + b"x: y\r\n" * 20), 0.05), HOLD)
        ),
    },
    "400": {
        "status 400": _status("400 Bad Request", _ERROR_BODY),
    },
    "422": {
        "status 422": _status("422 Unprocessable Content", _ERROR_BODY),
    },
    "credential": {
        "status 401": _status("401 Unauthorized", _ERROR_BODY),
        "status 403": _status("403 Forbidden", _ERROR_BODY),
    },
    "404": {
        "status 404": _status("404 Not Found", {"error": {"message": "There is no such model.", "code": "its_code"}}),
    },
    "unknown_url": {
        "status 404 without a model": _status("404 Not Found", _ERROR_BODY),
        "status 404 with a page": _page("404 Not Found"),
    },
    "408": {
        "status 408": _status("408 Request Timeout"),
        "status 504": _status("504 Gateway Timeout"),
    },
    "409": {
        "status 409": _status("409 Conflict", _ERROR_BODY),
    },
    "413": {
        "status 413": _status("413 Content Too Large", _ERROR_BODY),
    },
    "429": {
        "status 429": _status("429 Too Many Requests", _ERROR_BODY, b"retry-after: 7"),
    },
    "429_odd": {
        "status 429 with odd patience": _status("429 Too Many Requests", _ERROR_BODY, b"retry-after: soon"),
    },
    "429_cut": {
        "status 429 that breaks off": SocketFault(
            _sent(b"HTTP/1.1 429 Slow Down\r\ncontent-length: 99\r\n\r\nslow", CLOSE)
        ),
    },
    "quota": {
        "status 429 for good": _status("429 Too Many Requests", _QUOTA),
    },
    "500": {
        "status 500": _status("500 Internal Server Error", _ERROR_BODY),
        "status 500 with a page": _page("500 Internal Server Error"),
        "status 502 with a page": _page("502 Bad Gateway"),
    },
    "503": {
        "status 503": _status("503 Service Unavailable", None, b"retry-after: 3"),
        "status 529": _status("529 Overloaded", _ERROR_BODY, b"retry-after: 3"),
    },
    "503_bare": {
        "status 503 without patience": _status("503 Service Unavailable"),
    },
    "redirect": {
        "status 307": _status("307 Temporary Redirect", None, b"location: http://127.0.0.1:1/elsewhere"),
    },
    "204": {
        "status 204": SocketFault(_sent(b"HTTP/1.1 204 No Content\r\n\r\n")),
    },
    "page": {
        "a page with status 200": _page("200 OK"),
    },
    "gzip": {
        "gzip": SocketFault(_bomb),
    },
    "gzip_cut": {
        "gzip that is cut off": SocketFault(_cut_gzip),
        "gzip that is none": SocketFault(lambda events: (coded(events.media_type, "gzip", events.answer),)),
    },
    "coding": {
        "brotli": SocketFault(lambda events: (coded(events.media_type, "br", events.answer),)),
    },
    "empty": {
        "an empty body": _body(_sent(END)),
        "nothing but comments and an end": _body(lambda events: (chunk(events.silence * 3), END)),
    },
    "hollow": {
        "a body of no bytes": SocketFault(lambda events: (_typed(events.media_type, b""),)),
        "JSON without an answer": SocketFault(_sent(_typed(JSON, b'{"id": "x"}'))),
        "JSON without a choice": SocketFault(_sent(_typed(JSON, b'{"id": "x", "choices": []}'))),
        "JSON that is none": SocketFault(_sent(_typed(JSON, b"no answer today"))),
        "JSON that is too deep": SocketFault(_sent(_typed(JSON, b'{"a":' * 500 + b"1" + b"}" * 500))),
    },
    "error_event": {
        "an error in the body": _body(lambda events: (chunk(events.failure), END)),
    },
    "too_large": {
        "an answer without end": _endless(
            lambda events: events.text * max(1, 16384 // len(events.text)),
            lambda events: chunk(events.start) if events.start else b"",
        ),
    },
    "event_too_large": {
        "an event without end": _endless(lambda _: b"A" * 65536, lambda events: chunk(events.opening or b"A")),
    },
    "truncated": {
        "it closes in the body": listed("disconnect", after="0"),
        "it resets in the body": listed("disconnect", after="0", how="reset"),
        "it closes in an event": _body(lambda events: (chunk(events.text[:-4]), CLOSE)),
        "an end in an event": _body(lambda events: (chunk(events.text[: len(events.text) // 2]), END)),
        "it closes in a chunk": _body(_sent(b"ff\r\n" + b"x", CLOSE)),
        "a chunk without a size": _body(_sent(b"zz\r\n", HOLD)),
    },
    "framing": {
        "a chunk without a size right behind the head": SocketFault(
            lambda events: (head(events.media_type) + b"zz\r\n", HOLD)
        ),
    },
    "no_finish": {
        "an end without a finish": listed("truncated", after="1"),
    },
    "stall": {
        "silence in the body": listed("stall", after="0"),
        "nothing but comments": _body(
            lambda events: (*_slowly(itertools.repeat(chunk(events.silence), 200), 0.02), HOLD)
        ),
        "an event that trickles": _body(
            lambda events: (*_slowly((chunk(bytes([byte])) for byte in events.opening + b"A" * 400), 0.02), HOLD)
        ),
    },
    "lost_call": {
        "a call that is not there": _body(lambda events: (chunk(events.start + events.lost_call), END)),
    },
    "malformed": {
        "a malformed event": _body(lambda events: (chunk(events.malformed), END)),
    },
}
FAULTS: Final[Mapping[str, SocketFault]] = {
    name: fault for faults in FAULTS_BY_KIND.values() for name, fault in faults.items()
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return renamed(__name__, name)
