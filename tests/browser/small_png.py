"""Makes a screenshot small: a page has few colours, so that one byte says which a pixel has."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_SAMPLES: Final = {2: 3, 6: 4}
_MOST_COLOURS: Final = 256

Colour: TypeAlias = bytes


def small_png(png: bytes) -> bytes:
    """Returns the picture with a palette of at most 256 of its colours, and for each other the nearest of them (W3C,
    Portable Network Graphics, sections 9 and 11.2). `png` has 8 bits a sample, in three or four samples a pixel, and is
    not interlaced: such are those of Chromium."""
    chunks = dict(_chunks(png))
    width, height, depth, kind, *_, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, interlaced) == (8, 0)
    samples = _SAMPLES[kind]
    rows = [
        [row[at : at + 3] for at in range(0, len(row), samples)]
        for row in _rows(zlib.decompress(chunks[b"IDAT"]), width * samples, samples)
    ]
    counted = Counter(colour for row in rows for colour in row)
    palette = _palette(counted)
    places = {colour: place for place, colour in enumerate(palette)}
    places |= {colour: _nearest(colour, palette) for colour in counted if colour not in places}
    pixels = b"".join(b"\0" + bytes(places[colour] for colour in row) for row in rows)
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            (b"PLTE", b"".join(palette)),
            (b"IDAT", zlib.compress(pixels, 9)),
            (b"IEND", b""),
        )
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the names of the chunks with their data; that of the pixels, which may be in several, is one."""
    assert png.startswith(_SIGNATURE)
    at, pixels = len(_SIGNATURE), b""
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        pixels += data if name == b"IDAT" else b""
        yield name, pixels if name == b"IDAT" else data
        at += size + 12


def _rows(data: bytes, size: int, samples: int) -> Iterator[bytes]:
    """Yields the rows of the pixels, with their filters undone."""
    above = bytearray(size)
    for start in range(0, len(data), size + 1):
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + size])
        for at in range(size):
            left, corner = (row[at - samples], above[at - samples]) if at >= samples else (0, 0)
            row[at] = (row[at] + _predicted(kind, left, above[at], corner)) & 255
        yield bytes(row)
        above = row


def _predicted(kind: int, left: int, above: int, corner: int) -> int:
    match kind:
        case 0:
            return 0
        case 1:
            return left
        case 2:
            return above
        case 3:
            return (left + above) // 2
        case _:
            far = {left: abs(above - corner), above: abs(left - corner), corner: abs(left + above - 2 * corner)}
            # Of equally near ones the left, then the one above.
            return min((left, above, corner), key=lambda one: far[one])


def _palette(counted: Mapping[Colour, int]) -> list[Colour]:
    """Returns, from the most frequent colour on, always the one whose pixels would differ most from those chosen."""
    chosen: list[Colour] = []
    far = dict.fromkeys(counted, 1)
    while len(chosen) < _MOST_COLOURS and any(far.values()):
        colour = max(far, key=lambda one: far[one] * counted[one])
        far = {one: _distance(one, colour) if not chosen else min(far[one], _distance(one, colour)) for one in far}
        chosen.append(colour)
    return chosen


def _nearest(colour: Colour, palette: Sequence[Colour]) -> int:
    return min(range(len(palette)), key=lambda at: _distance(colour, palette[at]))


def _distance(one: Colour, other: Colour) -> int:
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2 + (one[2] - other[2]) ** 2
