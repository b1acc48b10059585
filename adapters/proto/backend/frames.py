"""Splits the bytes of a response into protobuf messages and an end, for each carrier.

Sources: gRPC-Web, PROTOCOL-WEB.md; Connect protocol reference, "Streaming RPCs"; protobuf.dev, "Encoding" (varints).
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final, Protocol, TypeAlias

from adapters.proto.backend.rpc_status import connect_end, grpc_error
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.framing.base64 import decode_base64
from gateway.framing.sse import SSEDecoder
from gateway.wires.event_stream import EVENTS_PER_RESPONSE, response_too_large


class End:
    """The wire itself says that the response is complete."""


END: Final = End()
Frame: TypeAlias = bytes | End
_ReadEnd: TypeAlias = Callable[[bytes], BackendError | None]

_HEADER: Final = 5
_unpack_header: Final = struct.Struct(">BI").unpack_from
_unpack_length: Final = struct.Struct(">I").unpack_from
_COMPRESSED: Final = 1
_TRAILERS: Final = 0x80
_END_STREAM: Final = 2
_LONGEST_VARINT: Final = 5
_LARGEST_TRAILERS: Final = 64 * 1024


class Frames(Protocol):
    """Yields whole messages as they arrive. Both methods raise BackendError, after the messages before the fault; `end`
    raises BackendTruncated for half a message."""

    def feed(self, data: bytes) -> Iterator[Frame]: ...

    def end(self) -> Iterator[Frame]: ...


class _Prefixed:
    """Keeps the bytes of an incomplete frame. Most reads hold whole ones: only half a frame is copied, and it grows in
    place. `_wanted` is the size of the frame, or of its beginning, of which a part is held."""

    _wanted = 0

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()

    def end(self) -> Iterator[Frame]:
        if self._held:
            raise BackendTruncated("The backend's response ended in the middle of a message.")
        return iter(())

    def _with_held(self, data: bytes) -> bytes:
        """Returns the bytes with those that are held, none as long as they are less than is wanted."""
        self._held += data
        if len(self._held) < self._wanted:
            return b""
        data = bytes(self._held)
        self._held.clear()
        return data

    def _hold(self, data: bytes, wanted: int) -> None:
        self._held += data
        self._wanted = wanted


class VarintFrames(_Prefixed):
    """Messages behind their length as a varint."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        if self._held:
            data = self._with_held(data)
        at = 0
        while at < len(data):
            size, begin = data[at], at + 1
            if size > 127:
                found = _length(data, at)
                if found is None:
                    self._hold(data[at:], 0)
                    return
                size, begin = found
            if size > self._limit:
                raise _too_large(self._limit)
            end = begin + size
            if len(data) < end:
                self._hold(data[at:], end - at)
                return
            yield data[begin:end]
            at = end


def _length(data: bytes, at: int) -> tuple[int, int] | None:
    """Returns the number of a varint and where it ends, or None for half a one."""
    number = 0
    written = data[at : at + _LONGEST_VARINT]
    for place, byte in enumerate(written):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, at + place + 1
    if len(written) == _LONGEST_VARINT:
        raise BackendProtocolError("The backend sent a length that is no varint of 32 bits.")
    return None


class U32Frames(_Prefixed):
    """Messages behind their length in four bytes, the most significant first."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        if self._held:
            data = self._with_held(data)
        at = 0
        while (begin := at + 4) <= len(data):
            (size,) = _unpack_length(data, at)
            if size > self._limit:
                raise _too_large(self._limit)
            end = begin + size
            if len(data) < end:
                self._hold(data[at:], end - at)
                return
            yield data[begin:end]
            at = end
        self._hold(data[at:], 4)


def _too_large(limit: int) -> BackendProtocolError:
    return BackendProtocolError(
        f"The backend sent an event larger than {limit} bytes.", code="upstream_event_too_large"
    )


class _Envelopes(_Prefixed):
    """Messages behind a byte of flags and their length in four bytes, until an envelope that ends the stream. `ends`
    reads what such an envelope reports, by its flags: an error, or None for success."""

    ends: ClassVar[Mapping[int, _ReadEnd]] = {}

    def feed(self, data: bytes) -> Iterator[Frame]:
        if self._held:
            data = self._with_held(data)
        at, wanted = 0, _HEADER
        while len(data) - at >= _HEADER:
            flags, size = _unpack_header(data, at)
            if flags:
                self._check_flags(flags)
            limit = _LARGEST_TRAILERS if flags else self._limit
            if size > limit:
                raise _too_large(limit)
            end = at + _HEADER + size
            if len(data) < end:
                wanted = end - at
                break
            payload = data[at + _HEADER : end]
            at = end
            if flags:
                if error := self.ends[flags](payload):
                    raise error
                yield END
            else:
                yield payload
        self._hold(data[at:], wanted)

    def _check_flags(self, flags: int) -> None:
        if flags & _COMPRESSED:
            raise BackendProtocolError("The backend sent a compressed message; the request accepts none.")
        if flags not in self.ends:
            raise BackendProtocolError("The backend sent a message with unknown flags.")


class GrpcFrames(_Envelopes):
    """No envelope ends the stream: its status is in the trailers of HTTP/2, which no body can forge."""


def _trailers_error(payload: bytes) -> BackendError | None:
    lines = (line.partition(":") for line in payload.decode("utf-8", "replace").split("\r\n"))
    return grpc_error({name.strip().lower(): value.strip() for name, _, value in lines})


class GrpcWebFrames(_Envelopes):
    """The last envelope holds trailers: lines of `name: value`."""

    ends: ClassVar[Mapping[int, _ReadEnd]] = {_TRAILERS: _trailers_error}


class ConnectFrames(_Envelopes):
    """The last envelope holds JSON, with an error or without."""

    ends: ClassVar[Mapping[int, _ReadEnd]] = {_END_STREAM: connect_end}


class GrpcWebTextFrames:
    """GrpcWebFrames as base64. Each part of the body may be padded, so that groups of four are decoded apart."""

    def __init__(self, limit: int) -> None:
        self._frames = GrpcWebFrames(limit)
        self._held = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        text = self._held + data.translate(None, b"\r\n")
        whole = len(text) - len(text) % 4
        self._held = text[whole:]
        begin = 0
        while begin < whole:
            # Padding ends a part; its group is the last of what one decoding may hold.
            padding = text.find(b"=", begin, whole)
            end = whole if padding < 0 else padding + 4 - padding % 4
            yield from self._part(text[begin:end])
            begin = end

    def _part(self, text: bytes) -> Iterator[Frame]:
        """Decodes whole groups. What precedes a fault does not depend on how the text was cut."""
        try:
            decoded = decode_base64(text, len(text))
        except BackendProtocolError:
            for begin in range(0, len(text), 4):
                yield from self._frames.feed(decode_base64(text[begin : begin + 4], 4))
        else:
            yield from self._frames.feed(decoded)

    def end(self) -> Iterator[Frame]:
        if self._held:
            raise BackendTruncated("The backend's response ended in the middle of its base64.")
        return self._frames.end()


class SSEBase64Frames:
    """Server-sent events whose data is one message in base64. `[DONE]` ends the stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sse = SSEDecoder(limit * 4 // 3 + 4)

    def feed(self, data: bytes) -> Iterator[Frame]:
        for event in self._sse.feed(data):
            if (frame := self._frame(event)) is not None:
                yield frame
        if self._sse.fault is not None:
            raise self._sse.fault

    def end(self) -> Iterator[Frame]:
        """Reads an event that lacks its blank line: base64 without its end may still be base64, so it counts only where
        its length is that of whole groups."""
        tail = self._sse.tail()
        if tail is not None and tail.strip():
            if len(tail.strip()) % 4 and tail.strip() != b"[DONE]":
                raise BackendTruncated("The backend's response ended in the middle of an event.")
            if (frame := self._frame(tail)) is not None:
                yield frame

    def _frame(self, event: bytes) -> Frame | None:
        text = event.strip(b' \t"')
        if text == b"[DONE]":
            return END
        return decode_base64(text, self._limit) if text else None


class WholeBody:
    """One message, which ends with the body."""

    def __init__(self, limit: int) -> None:
        self._body = bytearray()
        self._limit = EVENTS_PER_RESPONSE * limit

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._body += data
        if len(self._body) > self._limit:
            raise response_too_large(self._limit)
        return iter(())

    def end(self) -> Iterator[Frame]:
        if self._body:
            yield bytes(self._body)


FramesFactory: TypeAlias = Callable[[int], Frames]
