"""Reads the width and height of an image, in pixels, from the first bytes of its file.

Sources: PNG (W3C), section 11.2.2; GIF89a, section 18; RFC 9649 (WebP), section 2; ITU-T T.81 (JPEG), annex B.
"""

import re
from typing import Final, TypeAlias

Size: TypeAlias = tuple[int, int]

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8"
# Frames of all processes, but not the tables among their markers (DHT, JPG, DAC).
_FRAME: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_GIF: Final = re.compile(rb"GIF8[79]a")


def read_image_size(data: bytes) -> Size | None:
    """Returns width and height of a PNG, GIF, WebP or JPEG file; None where its first bytes do not say them."""
    if data.startswith(_PNG):
        return _pair(data, 16, 4, "big")
    if _GIF.match(data):
        return _pair(data, 6, 2, "little")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data.startswith(_JPEG) else None


def _pair(data: bytes, at: int, size: int, order: str) -> Size | None:
    if len(data) < at + 2 * size:
        return None
    return _number(data, at, size, order), _number(data, at + size, size, order)


def _number(data: bytes, at: int, size: int, order: str) -> int:
    return int.from_bytes(data[at : at + size], "big" if order == "big" else "little")


def _webp(data: bytes) -> Size | None:
    match data[12:16]:
        case b"VP8X" if len(data) >= 30:
            return _number(data, 24, 3, "little") + 1, _number(data, 27, 3, "little") + 1
        case b"VP8L" if len(data) >= 25:
            bits = _number(data, 21, 4, "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if len(data) >= 30:
            return _number(data, 26, 2, "little") & 0x3FFF, _number(data, 28, 2, "little") & 0x3FFF
        case _:
            return None


def _jpeg(data: bytes) -> Size | None:
    at = len(_JPEG)
    while at + 9 <= len(data) and data[at] == 0xFF:
        if data[at + 1] in _FRAME:
            height, width = _number(data, at + 5, 2, "big"), _number(data, at + 7, 2, "big")
            return width, height
        at += 2 + _number(data, at + 2, 2, "big")
    return None
