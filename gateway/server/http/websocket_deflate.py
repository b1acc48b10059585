"""Inflates the compressed messages of a WebSocket (RFC 7692), within bounds, and compresses none.

wsproto's own extension inflates all that one read brings, whatever its size: a thousand times as much.
"""

import zlib
from collections.abc import Iterable
from typing import Final

from wsproto.extensions import PerMessageDeflate
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits
from wsproto.utilities import split_comma_header

from gateway.server.upstream.http1.content_coding import FREE, RATIO

# The empty block with which each message ends, and which its sender leaves out (RFC 7692, section 7.2.1).
_TAIL: Final = b"\x00\x00\xff\xff"
# What may follow the last block of a message that says so itself (section 7.2.3.5): the header of an empty block, in a
# byte of its own or in the last one, before its tail.
_AFTER_LAST: Final = (*tuple((b"\x00" + _TAIL)[:size] for size in range(len(_TAIL) + 2)), _TAIL)


class BoundedDeflate(PerMessageDeflate):
    """The extension of one connection. Each message is inflated by itself (no context takeover), to `most` bytes and to
    `RATIO` times its compressed size at most. What the server sends is not compressed, which the RFC leaves to it: a
    small event would cost more time than it saves bytes."""

    def __init__(self, most: int) -> None:
        super().__init__(client_no_context_takeover=True, server_no_context_takeover=True)
        self._most = most
        self._taken = self._given = 0

    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> CloseReason | RsvBits:
        # A control frame may stand between the fragments of a message, whose state it leaves as it is.
        self._inbound_is_compressible = not opcode.iscontrol()
        if opcode.iscontrol() or opcode is Opcode.CONTINUATION:
            return CloseReason.PROTOCOL_ERROR if rsv.rsv1 else RsvBits(True, False, False)
        self._inbound_compressed = rsv.rsv1
        self._taken = self._given = 0
        self._decompressor = zlib.decompressobj(-self.client_max_window_bits) if rsv.rsv1 else None
        return RsvBits(True, False, False)

    def frame_inbound_payload_data(self, proto: FrameDecoder | FrameProtocol, data: bytes) -> bytes | CloseReason:
        if not self._inbound_compressed or not self._inbound_is_compressible:
            return data
        return self._inflate(data)

    def frame_inbound_complete(self, proto: FrameDecoder | FrameProtocol, fin: bool) -> bytes | CloseReason | None:
        if not fin or not self._inbound_is_compressible or not self._inbound_compressed:
            return None
        return self._inflate(_TAIL)

    def frame_outbound(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, data: bytes, fin: bool
    ) -> tuple[RsvBits, bytes]:
        return rsv, data

    def _inflate(self, data: bytes) -> bytes | CloseReason:
        machine = self._decompressor
        assert machine is not None, "made with the first frame of a compressed message"
        self._taken += len(data)
        # One byte more shows that there is more; 0 would mean any number.
        room = min(self._most, FREE + RATIO * self._taken) - self._given + 1
        try:
            found = machine.decompress(data, room)
        except zlib.error:
            return CloseReason.INVALID_FRAME_PAYLOAD_DATA
        self._given += len(found)
        if len(found) == room:
            return CloseReason.MESSAGE_TOO_BIG
        if machine.eof and machine.unused_data not in _AFTER_LAST:
            return CloseReason.INVALID_FRAME_PAYLOAD_DATA
        return found


def accepted_deflate(offers: Iterable[bytes], most: int) -> tuple[BoundedDeflate | None, bytes]:
    """Returns the extension and the header of the answer to what a client offers; None: it offers nothing usable."""
    for offer in (one for line in offers for one in split_comma_header(line)):
        if offer.partition(";")[0].strip() != BoundedDeflate.name:
            continue
        deflate = BoundedDeflate(most)
        try:
            accepted = deflate.accept(offer)
        except ValueError:
            continue
        if isinstance(accepted, str):
            return deflate, f"{BoundedDeflate.name}; {accepted}".encode()
    return None, b""
