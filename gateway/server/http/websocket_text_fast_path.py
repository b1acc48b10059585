# fast path: "CPU/chunk, us", reads a message that came in one frame without the states of a parser
# budget: "message of a WebSocket"
# law: tests/server/http/test_websocket_messages.py
#      test_messages_in_any_frames_and_pieces_are_read_as_wsproto_reads_them
"""Reads a text message of a client that is one whole frame, and all of what was received (RFC 6455, section 5.2).

Clients send nearly every request so. Whatever else is received is read by wsproto, and only followed here: as far as
it takes to know whether the next bytes begin a message.
"""

from typing import Final

_FIN: Final = 0x80
_MASKED: Final = 0x80
_CONTROL: Final = 0x08
# The first byte of a whole text message, and the lengths that say how many bytes hold the length instead.
_TEXT: Final = 0x81
_SHORT: Final = 126
_WIDTHS: Final = {126: 2, 127: 8}
_HEAD: Final = 6


class TextFastPath:
    """Follows the frames of one connection. A message has `most` bytes at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        # The bytes that are missing of the last frame; None: its head came in pieces, and nothing is known any more.
        self._missing: int | None = 0
        # Whether frames of a message are missing.
        self._begun = False

    def read(self, data: bytes) -> str | None:
        """Returns the text of bytes that are one message in one frame; None for any others, which must be followed."""
        if self._missing != 0 or self._begun or len(data) < _HEAD or data[0] != _TEXT:
            return None
        size, start = data[1] - _MASKED, _HEAD
        if size == _SHORT:
            size, start = int.from_bytes(data[2:4], "big"), _HEAD + 2
            if size < _SHORT:
                return None
        # A frame without a mask has a size below zero; one with eight bytes of it is more than is parsed at once.
        if len(data) != start + size or size > self._most:
            return None
        mask = data[start - 4 : start] * (size // 4 + 1)
        masked, key = int.from_bytes(data[start:], "big"), int.from_bytes(mask[:size], "big")
        try:
            return (masked ^ key).to_bytes(size, "big").decode()
        except UnicodeDecodeError:
            return None

    def follow(self, data: bytes) -> None:
        """Takes note of bytes that are read elsewhere."""
        at = self._missing
        while at is not None and at < len(data):
            if not data[at] & _CONTROL:
                self._begun = not data[at] & _FIN
            at = _end(data, at)
        self._missing = None if at is None else at - len(data)


def _end(data: bytes, at: int) -> int | None:
    """Returns where a frame of a client ends, which begins there; None: its length is not there yet."""
    if at + 1 == len(data):
        return None
    size, start = data[at + 1] & ~_MASKED, at + _HEAD
    if (width := _WIDTHS.get(size)) is not None:
        if at + 2 + width > len(data):
            return None
        size, start = int.from_bytes(data[at + 2 : at + 2 + width], "big"), start + width
    return start + size
