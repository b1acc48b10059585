"""Turns the bytes that a client sends over a WebSocket into messages, and texts into frames (RFC 6455). No IO.

wsproto decodes the frames, except for those of `websocket_text_fast_path`. It knows no limits: those of a message are
here, and those of its inflated size in `websocket_deflate`. What is sent is one unmasked frame a text, which needs no
state.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from gateway.server.http.websocket_deflate import BoundedDeflate
from gateway.server.http.websocket_text_fast_path import TextFastPath

# A client that sends empty fragments without end sends none of a size.
MOST_FRAGMENTS: Final = 16 * 1024
# An empty control frame of the server.
PING: Final = b"\x89\x00"
# The first byte of a whole text message.
_TEXT: Final = 0x81


def _head(size: int) -> bytes:
    """Returns the head of the frame of a text with so many bytes (RFC 6455, section 5.2)."""
    if size < 126:
        return bytes((_TEXT, size))
    if size < 2**16:
        return struct.pack("!BBH", _TEXT, 126, size)
    return struct.pack("!BBQ", _TEXT, 127, size)


# The heads of events, nearly all of which are short, by the sizes of their texts.
HEADS: Final = tuple(map(_head, range(1024)))
SHORT: Final = len(HEADS)


class Text(msgspec.Struct, frozen=True):
    """A whole message."""

    text: str


class Begun(msgspec.Struct, frozen=True):
    """The first part of a message; the rest is awaited."""


class Reply(msgspec.Struct, frozen=True):
    """Bytes that the protocol owes to the client: the answer to a ping."""

    data: bytes


class Closing(msgspec.Struct, frozen=True):
    """The client closes the connection, or answers that of the server."""

    code: int


class Violation(msgspec.Struct, frozen=True):
    """What the client sent is not accepted, and nothing behind it is read: the connection ends with this code."""

    code: int
    reason: str


Received: TypeAlias = Text | Begun | Reply | Closing | Violation


class MessageReader:
    """Reads one connection. A message has `most` bytes at most, sent or inflated."""

    def __init__(self, most: int, deflate: BoundedDeflate | None = None) -> None:
        self._most = most
        self._connection = Connection(ConnectionType.SERVER, [] if deflate is None else [deflate])
        self._fast_path = TextFastPath(most)
        self._parts: list[str] = []
        self._size = 0
        self._fragments = 0
        self._ended = False

    def feed(self, data: bytes) -> Iterator[Received]:
        """Yields what these bytes complete. Nothing follows a `Closing` or a `Violation`."""
        if self._ended:
            return
        text = self._fast_path.read(data)
        if text is not None:
            yield Text(text)
            return
        self._fast_path.follow(data)
        self._connection.receive_data(data)
        for event in self._connection.events():
            match event:
                case TextMessage():
                    found = self._text(event)
                case BytesMessage():
                    found = Violation(CloseReason.UNSUPPORTED_DATA, "Messages must be text.")
                case Ping():
                    # Behind its close frame the server sends nothing.
                    opened = self._connection.state is ConnectionState.OPEN
                    found = Reply(self._connection.send(event.response())) if opened else None
                case CloseConnection():
                    found = self._closed(event)
                case Pong():
                    continue
                case _:
                    raise AssertionError(f"no event of an open connection: {event}")
            if found is not None:
                self._ended = isinstance(found, Closing | Violation)
                yield found
            if self._ended:
                return

    def close(self, code: int, reason: str) -> bytes:
        """Returns the close frame of the server; nothing where it has sent one."""
        if self._connection.state not in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            return b""
        return self._connection.send(CloseConnection(code, reason))

    def _text(self, message: TextMessage) -> Received | None:
        began = not self._parts
        self._size += len(message.data) if message.data.isascii() else len(message.data.encode())
        self._fragments += message.frame_finished
        if self._size > self._most:
            return Violation(CloseReason.MESSAGE_TOO_BIG, f"A message has at most {self._most} bytes.")
        if self._fragments > MOST_FRAGMENTS:
            return Violation(CloseReason.MESSAGE_TOO_BIG, f"A message has at most {MOST_FRAGMENTS} fragments.")
        self._parts.append(message.data)
        if not message.message_finished:
            return Begun() if began else None
        text = "".join(self._parts)
        self._parts.clear()
        self._size = self._fragments = 0
        return Text(text)

    def _closed(self, event: CloseConnection) -> Received:
        # wsproto tells a fault as it tells a close of the client, which alone changes the state.
        if self._connection.state in (ConnectionState.REMOTE_CLOSING, ConnectionState.CLOSED):
            return Closing(event.code)
        if event.code == CloseReason.MESSAGE_TOO_BIG:
            reason = f"A message has at most {self._most} bytes, and inflated at most 200 times its size."
            return Violation(event.code, reason)
        return Violation(event.code, "The frames are not those of RFC 6455.")


def text_frames(texts: Sequence[bytes]) -> bytes:
    """Returns the frames of whole text messages, each of which is UTF-8."""
    return b"".join([(HEADS[size] if (size := len(text)) < SHORT else _head(size)) + text for text in texts])
