"""Serves every wire of the measured gateway as its backend, HTTP/2 on the same port: `python -m bench.mock PORT`.

`python -m bench.mock PORT DELTAS HELD` responds with so many deltas where no request asks for another number, and holds
its responses back until it has so many requests.
"""

import asyncio
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final

import httptools
import uvloop

from bench import payload
from bench.mock_http2 import PREFACE, MockAnswer, MockHttp2Protocol

_PACE: Final = re.compile(rb"bench-(\d+)-(\d+)")
# Of a long body, only the first and the last piece are searched for these words.
# The response to a question with such a word has so many deltas, whatever the model is called.
_COUNT: Final = re.compile(rb"deltas-(\d+)")
# The response to a question with such a word repeats it in every delta.
_MARK: Final = re.compile(rb"mark-\d+")
_STREAM: Final = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n%s\r\n"
_EVENTS: Final = b"text/event-stream; charset=utf-8"
# After marked responses the connection is closed, so that the remaining resources can be counted.
_CLOSE: Final = b"connection: close\r\n"
_WHOLE: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"


# Any path but these is chat completions.
_WIRES: Final[Mapping[bytes, Callable[[int, str], Sequence[bytes]]]] = {
    b"/ai/multi-agent": payload.frames,
    b"/completion": payload.words,
    b"/v1/messages": payload.message_events,
    b"/responses": payload.response_events,
    b"/dragoman.demo.v1.Generation/Generate": payload.web_generation,
}
# The wires that respond as a whole where they are not asked to stream; the others are always streamed.
_ANSWERS: Final[Mapping[bytes, bytes]] = {
    path: _WHOLE % (len(answer), answer)
    for path, answer in ((b"/v1/chat/completions", payload.completion()), (b"/v1/messages", payload.whole_message()))
}
_MEDIA_TYPES: Final[Mapping[bytes, bytes]] = {b"/dragoman.demo.v1.Generation/Generate": b"application/grpc-web+proto"}


def _pace(body: bytes, deltas: int) -> tuple[int, float, str]:
    """Returns the number of deltas, the seconds between two of them, and the mark."""
    pace, asked, mark = _PACE.search(body), _COUNT.search(body), _MARK.search(body)
    count, delay = (int(pace[1]), int(pace[2])) if pace else (deltas, 0)
    return int(asked[1]) if asked else count, delay / 1000, mark[0].decode() if mark else ""


def _generated(deltas: int, body: bytes) -> MockAnswer:
    count, delay, mark = _pace(body, deltas)
    messages = payload.generation(count, mark) if mark else _plain_generation(count)
    return MockAnswer(messages, delay, last=bool(mark))


def _marked(write: Callable[[int, str], Sequence[bytes]], count: int, mark: str) -> Sequence[bytes]:
    return [b"%x\r\n%s\r\n" % (len(event), event) for event in write(count, mark)]


@lru_cache(maxsize=8)
def _plain(write: Callable[[int, str], Sequence[bytes]], count: int) -> Sequence[bytes]:
    return _marked(write, count, "")


@lru_cache(maxsize=8)
def _plain_generation(count: int) -> Sequence[bytes]:
    return payload.generation(count)


class Gate:
    """Holds responses back until so many of them (0: none) wait; then all of them begin."""

    def __init__(self, held: int) -> None:
        self._held = held
        self._waiting: list[Callable[[], None]] = []

    def begin(self, respond: Callable[[], None]) -> None:
        """Calls `respond`, now or as soon as enough others wait."""
        self._waiting.append(respond)
        if len(self._waiting) < self._held:
            return
        waiting, self._waiting = self._waiting, []
        for response in waiting:
            response()


class MockProtocol(asyncio.Protocol):
    """One connection. Without a delay every iteration of the loop writes one event, as a fast backend would."""

    def __init__(self, deltas: int, gate: Gate) -> None:
        self._deltas = deltas
        self._gate = gate

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._url = b""

    def data_received(self, data: bytes) -> None:
        if data.startswith(PREFACE):
            http2 = MockHttp2Protocol(self._transport, partial(_generated, self._deltas))
            self._transport.set_protocol(http2)
            http2.data_received(data.removeprefix(PREFACE))
            return
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._body.clear()

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        ends = b"".join((self._body[0], self._body[-1])) if self._body else b""
        whole = b"".join(self._body)
        streamed = b'"stream":true' in whole or b'"stream": true' in whole
        self._gate.begin(partial(self._respond, self._url, ends, streamed))

    def _respond(self, url: bytes, ends: bytes, streamed: bool) -> None:
        if not streamed and (answer := _ANSWERS.get(url)) is not None:
            self._transport.write(answer)
            return
        count, delay, mark = _pace(ends, self._deltas)
        write = _WIRES.get(url, payload.chunks)
        self._transport.write(_STREAM % (_MEDIA_TYPES.get(url, _EVENTS), _CLOSE if mark else b""))
        events = _marked(write, count, mark) if mark else _plain(write, count)
        self._play(events, 0, delay, asyncio.get_running_loop().time())

    def _play(self, events: Sequence[bytes], at: int, delay: float, due: float) -> None:
        if self._transport.is_closing():
            return
        if at == len(events):
            self._transport.write(b"0\r\n\r\n")
            return
        self._transport.write(events[at])
        loop = asyncio.get_running_loop()
        if delay:
            # By the time at which it was due: a busy machine does not make responses longer.
            loop.call_at(due + delay, self._play, events, at + 1, delay, due + delay)
        else:
            loop.call_soon(self._play, events, at + 1, delay, due)


async def serve(port: int, deltas: int = payload.CHUNKS, held: int = 0) -> None:
    """Serves until the process ends."""
    make = partial(MockProtocol, deltas, Gate(held))
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(*map(int, sys.argv[1:])))
