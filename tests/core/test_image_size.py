"""Tests the reader of image sizes against files of each format, made by hand after the formats' documents."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.image_size import read_image_size

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480)
EXIF = b"\xff\xe1" + struct.pack(">H", 2_002) + bytes(2_000)
TABLE = b"\xff\xc4" + struct.pack(">H", 4) + bytes(2)
FRAME = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, 480, 640, 3)
JPEG = b"\xff\xd8" + EXIF + TABLE + FRAME
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
RIFF = b"RIFF\0\0\0\0WEBP"
EXTENDED = RIFF + b"VP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
LOSSLESS = RIFF + b"VP8L" + bytes(4) + b"\x2f" + (639 | 479 << 14).to_bytes(4, "little")
LOSSY = RIFF + b"VP8 " + bytes(7) + b"\x9d\x01\x2a" + struct.pack("<HH", 640 | 1 << 14, 480)
FILES = {"png": PNG, "jpeg": JPEG, "gif": GIF, "extended": EXTENDED, "lossless": LOSSLESS, "lossy": LOSSY}


@pytest.mark.parametrize("kind", FILES)
def test_each_format_says_its_size(kind: str) -> None:
    assert read_image_size(FILES[kind]) == read_image_size(FILES[kind] + bytes(99)) == (640, 480)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_ends_too_early_says_no_size(kind: str) -> None:
    assert [read_image_size(FILES[kind][:length]) for length in (0, 2, 6, 8)] == [None] * 4
    assert read_image_size(FILES[kind][:-4]) is None


@given(st.binary(max_size=64), st.sampled_from([b"", *[file[:16] for file in FILES.values()]]))
def test_law_any_bytes_have_a_size_or_none(data: bytes, head: bytes) -> None:
    size = read_image_size(head + data)
    assert size is None or min(size) >= 0
