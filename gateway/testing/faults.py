"""Builds every fault of a backend as a script for the faulty backend, from the bytes of a valid response on its wire.

`FAULTS` names them, and `FAULTS_BY_KIND` has them below their kinds (`gateway.demo.faults.kinds`). The author of an
adapter defines a `Spoken` and plays each fault before and after the first text.
"""

import asyncio
import itertools
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.testing.faulty import END, Connection, FaultyBackend, Script, answer, chunk, faulty_backend, head

# Long enough for the gateway to read one piece before the next is sent.
PAUSE_S: Final = 0.04


class Spoken(msgspec.Struct, frozen=True):
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


Then: TypeAlias = Literal["close", "reset", "hold", "stay"]


class Fault(msgspec.Struct, frozen=True):
    """Sends `pieces` and `then` closes, resets, holds the connection without sending, or waits for the next request.

    `in_body`: the pieces belong to the body of a 200, so that the fault may also come after the first text. `pause_s`
    is the pause after each piece. Without `listens` the port is closed. `tls`: the address says https, and the pieces
    are the response to the first bytes of the handshake.
    """

    pieces: Callable[[Spoken], Iterable[bytes]]
    then: Then = "close"
    in_body: bool = False
    pause_s: float = 0
    listens: bool = True
    tls: bool = False

    def script(self, spoken: Spoken, begun: bool = False) -> Script:
        """Build the script of the fault on this wire; `begun`: after the first text (only for a fault in the body)."""

        async def play(connection: Connection) -> None:
            if self.in_body:
                await connection.send(head(spoken.media_type))
                await asyncio.sleep(PAUSE_S)
            if begun:
                await connection.send(chunk(spoken.begin))
                await asyncio.sleep(PAUSE_S)
            for piece in self.pieces(msgspec.structs.replace(spoken, start=b"") if begun else spoken):
                await connection.send(piece)
                await asyncio.sleep(self.pause_s)
            if self.then == "close":
                connection.close()
            elif self.then == "reset":
                connection.reset()
            elif self.then == "hold":
                await connection.gone()

        return play


@asynccontextmanager
async def playing(fault: Fault, spoken: Spoken, begun: bool = False) -> AsyncIterator[FaultyBackend]:
    """Serve a backend with this fault until the block ends."""
    async with faulty_backend(fault.script(spoken, begun)) as backend:
        if fault.tls:
            backend.scheme = "https"
            backend.speaks_first = True
        if not fault.listens:
            async with faulty_backend(fault.script(spoken)) as closed:
                backend.port = closed.port
        yield backend


def _sent(*pieces: bytes) -> Callable[[Spoken], Iterable[bytes]]:
    return lambda _: pieces


def _status(status: str, document: object = None, *headers: bytes) -> Fault:
    body = b"" if document is None else json.dumps(document).encode()
    return Fault(_sent(answer(status, body, b"content-type: application/json", *headers)), "stay")


def _page(status: str) -> Fault:
    return Fault(_sent(answer(status, b"<html><body>nginx says no</body></html>", b"content-type: text/html")), "stay")


def _typed(media_type: str, body: bytes) -> bytes:
    return answer("200 OK", body, b"content-type: " + media_type.encode())


def _body(pieces: Callable[[Spoken], Iterable[bytes]], then: Then = "hold", pause_s: float = 0) -> Fault:
    return Fault(pieces, then, in_body=True, pause_s=pause_s)


def _endless(piece: Callable[[Spoken], bytes], first: Callable[[Spoken], bytes] = lambda _: b"") -> Fault:
    return _body(lambda spoken: itertools.chain([first(spoken)], itertools.repeat(chunk(piece(spoken)))))


@cache
def _packed(silence: bytes) -> bytes:
    """Build a decompression bomb of keep-alive bytes, which no limit on the size of an event stops."""
    return zlib.compress(silence * (2**24 // len(silence)), wbits=31)


def coded(media_type: str, coding: str, body: bytes) -> bytes:
    """Build a whole 200 with a body in this content coding."""
    return answer("200 OK", body, b"content-type: " + media_type.encode(), b"content-encoding: " + coding.encode())


def _bomb(spoken: Spoken) -> Iterable[bytes]:
    yield coded(spoken.media_type, "gzip", _packed(spoken.silence))


def _cut_gzip(spoken: Spoken) -> Iterable[bytes]:
    """The framing is complete, the compressed bytes are not."""
    packed = zlib.compress(spoken.silence * 3, wbits=31)
    yield coded(spoken.media_type, "gzip", packed[:-4])


_ERROR_BODY: Final = {"error": {"message": "said by the backend", "code": "its_code"}}
_QUOTA: Final = {"error": {"message": "nothing left", "code": "insufficient_quota"}}
JSON: Final = "application/json"
_OK: Final = b"HTTP/1.1 200 OK\r\n"

FAULTS_BY_KIND: Final[Mapping[str, Mapping[str, Fault]]] = {
    "unreachable": {
        "the connection is refused": Fault(_sent(), listens=False),
    },
    "tls": {
        "no TLS where TLS is expected": Fault(_sent(b"no TLS here\r\n"), tls=True),
    },
    "closed": {
        "it closes before the head": Fault(_sent()),
        "it resets before the head": Fault(_sent(), "reset"),
        "it closes in the head": Fault(_sent(_OK + b"x: y")),
    },
    "no_http": {
        "garbage instead of a head": Fault(_sent(b"what is this\r\n\r\n")),
        "a flood of headers": Fault(_sent(_OK + b"".join(b"x-%d: y\r\n" % number for number in range(9000)) + b"\r\n")),
        "a header without end": Fault(_sent(_OK + b"x: " + b"y" * 100_000 + b"\r\n\r\n")),
    },
    "no_head": {
        "silence before the head": Fault(_sent(), "hold"),
        "half a status line": Fault(_sent(b"HTTP/1.1 2"), "hold"),
        "a head that trickles": Fault(
            lambda _: (bytes([byte]) for byte in _OK + b"x: y\r\n" * 20), "hold", pause_s=0.05
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
        "status 429 that breaks off": Fault(_sent(b"HTTP/1.1 429 Slow Down\r\ncontent-length: 99\r\n\r\nslow")),
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
        "status 204": Fault(_sent(b"HTTP/1.1 204 No Content\r\n\r\n"), "stay"),
    },
    "page": {
        "a page with status 200": _page("200 OK"),
    },
    "gzip": {
        "gzip": Fault(_bomb),
    },
    "gzip_cut": {
        "gzip that is cut off": Fault(_cut_gzip, "stay"),
        "gzip that is none": Fault(lambda spoken: (coded(spoken.media_type, "gzip", spoken.answer),), "stay"),
    },
    "coding": {
        "brotli": Fault(lambda spoken: (coded(spoken.media_type, "br", spoken.answer),), "stay"),
    },
    "empty": {
        "an empty body": _body(_sent(END), "stay"),
        "nothing but comments and an end": _body(lambda spoken: (chunk(spoken.silence * 3), END), "stay"),
    },
    "hollow": {
        "a body of no bytes": Fault(lambda spoken: (_typed(spoken.media_type, b""),), "stay"),
        "JSON without an answer": Fault(_sent(_typed(JSON, b'{"id": "x"}')), "stay"),
        "JSON without a choice": Fault(_sent(_typed(JSON, b'{"id": "x", "choices": []}')), "stay"),
        "JSON that is none": Fault(_sent(_typed(JSON, b"no answer today")), "stay"),
        "JSON that is too deep": Fault(_sent(_typed(JSON, b'{"a":' * 500 + b"1" + b"}" * 500)), "stay"),
    },
    "error_event": {
        "an error in the body": _body(lambda spoken: (chunk(spoken.failure), END), "stay"),
    },
    "too_large": {
        "an answer without end": _endless(
            lambda spoken: spoken.text * max(1, 16384 // len(spoken.text)),
            lambda spoken: chunk(spoken.start) if spoken.start else b"",
        ),
    },
    "event_too_large": {
        "an event without end": _endless(lambda _: b"A" * 65536, lambda spoken: chunk(spoken.opening or b"A")),
    },
    "truncated": {
        "it closes in the body": _body(_sent(), "close"),
        "it resets in the body": _body(_sent(), "reset"),
        "it closes in an event": _body(lambda spoken: (chunk(spoken.text[:-4]),), "close"),
        "an end in an event": _body(lambda spoken: (chunk(spoken.text[: len(spoken.text) // 2]), END), "stay"),
        "it closes in a chunk": _body(_sent(b"ff\r\n" + b"x"), "close"),
        "a chunk without a size": _body(_sent(b"zz\r\n"), "hold"),
    },
    "framing": {
        "a chunk without a size right behind the head": Fault(
            lambda spoken: (head(spoken.media_type) + b"zz\r\n",), "hold"
        ),
    },
    "no_finish": {
        "an end without a finish": _body(lambda spoken: (chunk(spoken.start + spoken.text), END), "stay"),
    },
    "stall": {
        "silence in the body": _body(_sent()),
        "nothing but comments": _body(lambda spoken: itertools.repeat(chunk(spoken.silence), 200), pause_s=0.02),
        "an event that trickles": _body(
            lambda spoken: (chunk(bytes([byte])) for byte in spoken.opening + b"A" * 400), pause_s=0.02
        ),
    },
    "lost_call": {
        "a call that is not there": _body(lambda spoken: (chunk(spoken.start + spoken.lost_call), END), "stay"),
    },
    "malformed": {
        "a malformed event": _body(lambda spoken: (chunk(spoken.malformed), END), "stay"),
    },
}
FAULTS: Final[Mapping[str, Fault]] = {
    name: fault for faults in FAULTS_BY_KIND.values() for name, fault in faults.items()
}
