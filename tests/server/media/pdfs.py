"""PDF files: usual ones, and those that somebody writes to harm the reader of them."""

import functools
import zlib
from collections.abc import Sequence
from typing import Final

Stream = tuple[bytes, bytes]


def shows(text: str) -> Stream:
    """Returns the stream of a page that shows a line of text."""
    return b"", b"BT /F1 12 Tf 50 700 Td (%s) Tj ET" % text.encode("latin-1")


def flate(content: bytes, times: int = 1) -> Stream:
    """Returns a stream that is compressed so many times."""
    data = content
    for _ in range(times):
        data = zlib.compress(data, 9)
    return b"/Filter[%s]" % (b"/FlateDecode" * times), data


@functools.cache
def bomb(times: int = 1) -> Stream:
    """Returns a stream of 300 MB that is compressed so many times."""
    return flate(b"\0" * 300_000_000, times)


def pdf(*streams: Stream, trailer: bytes = b"") -> bytes:
    """Returns a file with a page for each stream (ISO 32000-1, section 7.5)."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * at) for at in range(len(streams)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(streams), kids),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for at, (filters, data) in enumerate(streams):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (5 + 2 * at)
        )
        objects.append(b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), filters, data))
    return assembled(objects, trailer)


def assembled(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """Returns the file of these objects, the first of which is the catalogue."""
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, trailer, table)
    return bytes(out)


ENCRYPTED: Final = pdf(
    shows("secret"),
    trailer=b"/ID[<00112233445566778899aabbccddeeff><00112233445566778899aabbccddeeff>]"
    b"/Encrypt<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -4>>" % (b"ab" * 32, b"cd" * 32),
)
# Pages that are their own parent's child, and a form that draws itself.
LOOP: Final = pdf(shows("x")).replace(b"/Kids[4 0 R]", b"/Kids[2 0 R]")
FORM_LOOP: Final = assembled(
    [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</XObject<</X 4 0 R>>>>/Contents 5 0 R>>",
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 4 0 R>>>>/Length 5>>"
        b"stream\n/X Do\nendstream",
        b"<</Length 5>>stream\n/X Do\nendstream",
    ]
)
