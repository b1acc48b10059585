"""Serves the made-up service of the demo backend over HTTP/2, for `bench.mock`: as little as a fast backend needs.

It reads no head, because it has one method, and knows a window only to wait for it. (RFC 9113.)
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class MockAnswer(msgspec.Struct, frozen=True):
    """The messages of a response, each in its envelope, and the seconds between two of them. `last`: the connection is
    closed behind the response, if it has no other one."""

    messages: Sequence[bytes]
    delay: float
    last: bool


Answer: TypeAlias = Callable[[bytes], MockAnswer]

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_INITIAL_WINDOW: Final = 4
_LARGEST_WINDOW: Final = 2**31 - 1
_DEFAULT_WINDOW: Final = 65_535
_HEADER: Final = 9


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _literal(name: bytes, value: bytes) -> bytes:
    """A header of HPACK that no table keeps; both texts are short."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


_SETTING: Final = _INITIAL_WINDOW.to_bytes(2, "big") + _LARGEST_WINDOW.to_bytes(4, "big")
_GREETING: Final = _frame(_SETTINGS, 0, 0, _SETTING) + _frame(
    _WINDOW_UPDATE, 0, 0, (_LARGEST_WINDOW - _DEFAULT_WINDOW).to_bytes(4, "big")
)
# 0x88 is `:status: 200` of the static table.
_HEAD: Final = b"\x88" + _literal(b"content-type", b"application/grpc+proto")
_TRAILERS: Final = _literal(b"grpc-status", b"0")
_NOTHING: Final = MockAnswer((), 0, False)


class _Stream(msgspec.Struct):
    """`window` is what the client accepts of the response; `open` turns false when the client leaves."""

    number: int
    window: int
    body: bytearray = msgspec.field(default_factory=bytearray)
    answer: MockAnswer = _NOTHING
    at: int = 0
    open: bool = True


class MockHttp2Protocol(asyncio.Protocol):
    """One connection, whose preface has been read. Without a delay every iteration of the loop writes one message of
    each response."""

    def __init__(self, transport: asyncio.Transport, answer: Answer) -> None:
        self._transport = transport
        self._answer = answer
        self._held = bytearray()
        self._window = _DEFAULT_WINDOW
        self._initial = _DEFAULT_WINDOW
        self._streams: dict[int, _Stream] = {}
        self._waiting: list[_Stream] = []
        self._newest = 0
        self._ended = False
        transport.write(_GREETING)

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._held += data
        at = 0
        while len(self._held) - at >= _HEADER:
            end = at + _HEADER + int.from_bytes(self._held[at : at + 3], "big")
            if len(self._held) < end:
                break
            kind, flags = self._held[at + 3], self._held[at + 4]
            stream = int.from_bytes(self._held[at + 5 : at + _HEADER], "big")
            self._receive(kind, flags, stream, bytes(self._held[at + _HEADER : end]))
            at = end
        del self._held[:at]

    def _receive(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == _HEADERS:
            self._streams[number] = _Stream(number, self._initial)
        elif kind == _DATA and number in self._streams:
            self._streams[number].body += payload
            if flags & _END_STREAM:
                self._begin(self._streams[number])
        elif kind == _WINDOW_UPDATE:
            self._widen(number, int.from_bytes(payload, "big"))
        elif kind == _SETTINGS and not flags & _ACK:
            self._adopt(payload)
        elif kind == _PING and not flags & _ACK:
            self._transport.write(_frame(_PING, _ACK, 0, payload))
        elif kind == _RESET and number in self._streams:
            self._streams.pop(number).open = False

    def _adopt(self, settings: bytes) -> None:
        for at in range(0, len(settings), 6):
            if int.from_bytes(settings[at : at + 2], "big") == _INITIAL_WINDOW:
                self._initial = int.from_bytes(settings[at + 2 : at + 6], "big")
        self._transport.write(_frame(_SETTINGS, _ACK, 0))

    def _widen(self, number: int, size: int) -> None:
        if number == 0:
            self._window += size
        elif number in self._streams:
            self._streams[number].window += size
        waiting, self._waiting = self._waiting, []
        for stream in waiting:
            self._play(stream)

    def _begin(self, stream: _Stream) -> None:
        stream.answer = self._answer(bytes(stream.body))
        self._transport.write(_frame(_HEADERS, _END_HEADERS, stream.number, _HEAD))
        self._play(stream)

    def _play(self, stream: _Stream) -> None:
        if not stream.open or self._transport.is_closing():
            return
        if stream.at == len(stream.answer.messages):
            self._end(stream)
            return
        message = stream.answer.messages[stream.at]
        if len(message) > min(stream.window, self._window):
            self._waiting.append(stream)
            return
        stream.at += 1
        stream.window -= len(message)
        self._window -= len(message)
        self._transport.write(_frame(_DATA, 0, stream.number, message))
        loop = asyncio.get_running_loop()
        if stream.answer.delay:
            loop.call_later(stream.answer.delay, self._play, stream)
        else:
            loop.call_soon(self._play, stream)

    def _end(self, stream: _Stream) -> None:
        del self._streams[stream.number]
        self._newest = max(self._newest, stream.number)
        self._transport.write(_frame(_HEADERS, _END_HEADERS | _END_STREAM, stream.number, _TRAILERS))
        if stream.answer.last and not self._streams:
            self._transport.write(_frame(_GO_AWAY, 0, 0, self._newest.to_bytes(4, "big") + bytes(4)))
            # The client closes the connection. If this side did while a request arrives, the reset would take the end
            # of the response with it.
            self._ended = True
            self._transport.write_eof()
