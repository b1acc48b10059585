"""Decompresses the bytes of a body, a backend's response or a client's request (RFC 9110, section 8.4.1). No IO.

It decodes the codings of Python's standard library. The size of the input bounds that of the output, so that a few
bytes cannot fill the memory, and the pieces of the output are no larger than those of an uncompressed body.
"""

import zlib
from typing import Final

from gateway.server.upstream.http.errors import HttpError, TooLarge, Truncated

# A stream of chunks that repeat all but a word shrinks to a thirtieth; a decompression bomb to a thousandth.
RATIO: Final = 200
# The output that the first few bytes may produce.
FREE: Final = 2**20
# The size of one piece of output.
PIECE: Final = 2**16

# With many tiny bodies in a row, the decompressor copies the rest for each of them; so the input is kept short.
_SLICE: Final = 4096
_GZIP: Final = 16 + zlib.MAX_WBITS
# With the header that RFC 1950 requires and without it: some servers send what RFC 9110 calls nonconformant.
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_METHOD: Final = 8
CODINGS: Final = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate"}


class ContentDecoder:
    """Decoder of one body. `complete`: all of it has been returned, or there was none."""

    def __init__(self, coding: str, most: int) -> None:
        """`most` is the maximum size of the output. Raises KeyError for an unsupported coding."""
        self._coding = CODINGS[coding]
        self._machine: zlib._Decompress | None = None
        self._rest = memoryview(b"")
        # The decompressor may hold more output than the last call returned.
        self._full = False
        self._fault: HttpError | None = None
        self._most = most
        self._taken = self._given = 0

    @property
    def pending(self) -> bool:
        """Whether more output is available before more input is needed."""
        return self._full or bool(self._rest) or self._fault is not None

    @property
    def complete(self) -> bool:
        return not self.pending and (self._machine is None or self._machine.eof)

    def feed(self, data: bytes = b"") -> bytes:
        """Accepts the next bytes, cut anywhere, and returns their output, or while `pending` the first part of it.
        Raises TooLarge, and Truncated for an invalid body; the output before such a fault is returned first."""
        if self._fault is not None:
            raise self._fault
        if data:
            self._rest = memoryview(bytes(self._rest) + data)
        found = bytearray()
        try:
            while len(found) < PIECE and self.pending:
                found += self._step(PIECE - len(found))
        except (TooLarge, Truncated) as error:
            if not found:
                raise
            self._fault = error
        return bytes(found)

    def close(self) -> None:
        """Marks the end of the input. Raises Truncated when the body is incomplete."""
        if not self.complete:
            raise Truncated

    def _step(self, room: int) -> bytes:
        machine = self._current()
        data = self._rest[:_SLICE]
        try:
            found = machine.decompress(data, room)
        except zlib.error as error:
            raise Truncated from error
        left = machine.unused_data if machine.eof else machine.unconsumed_tail
        used = len(data) - len(left)
        self._rest = self._rest[used:]
        self._full = len(found) == room and not machine.eof
        self._taken += used
        self._given += len(found)
        if self._given > min(self._most, FREE + RATIO * self._taken):
            raise TooLarge
        return found

    def _current(self) -> "zlib._Decompress":
        """Returns the decompressor of the next byte. Consecutive gzip members form one body (RFC 1952, section 2.2)."""
        if self._machine is None or self._machine.eof:
            if self._coding == "gzip":
                bits = _GZIP
            elif self._machine is not None:
                raise Truncated
            else:
                bits = _ZLIB if self._rest[0] & 0x0F == _METHOD else _RAW
            self._machine = zlib.decompressobj(bits)
        return self._machine
