"""Reads the whole body of a request, decompressed, up to a size limit."""

import asyncio
from collections.abc import Mapping
from typing import Final

from gateway.core.errors import InvalidRequest
from gateway.server.http.request_body import RequestBody
from gateway.server.upstream.deadlines import ClientDisconnected
from gateway.server.upstream.http.errors import TooLarge, Truncated
from gateway.server.upstream.http1.content_coding import CODINGS, PIECE, RATIO, ContentDecoder

# The time within which a body must arrive.
BODY_S: Final = 120


async def read_body(request_body: RequestBody, head: Mapping[bytes, bytes], limit: int) -> bytes:
    """Returns the whole body, decompressed. Raises InvalidRequest 415 for a coding that is not supported, 413 as soon
    as the body is known to be too large, sent or decompressed, and 400 for one that is not what its Content-Encoding
    says; ClientDisconnected when the client disconnects."""
    coding = _content_coding(head[b"content-encoding"]) if b"content-encoding" in head else None
    declared = head.get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > 18 or int(declared) > limit):
        raise too_large(limit)
    decoder = None if coding is None else ContentDecoder(coding, limit)
    pieces: list[bytes] = []
    size = 0
    while True:
        if not request_body.news:
            await request_body.wait()
        if request_body.over:
            raise ClientDisconnected
        piece = request_body.read()
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        # More may arrive while this piece is decompressed.
        last = not request_body.more
        if decoder is None:
            pieces.append(piece)
        else:
            pieces += await _decompressed(decoder, piece, limit, last=last)
        if last:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _content_coding(named: bytes) -> str | None:
    """Returns how the body is compressed; None: it is not."""
    coding = named.strip().lower().decode("latin-1")
    if coding in ("", "identity"):
        return None
    if coding not in CODINGS:
        raise InvalidRequest(
            "The body must be compressed with gzip or deflate, or not at all: see its header Content-Encoding.",
            status=415,
            code="unsupported_media_type",
            # RFC 9110, section 15.5.16
            headers={"accept-encoding": "gzip, deflate"},
        )
    return coding


async def _decompressed(decoder: ContentDecoder, data: bytes, limit: int, *, last: bool) -> list[bytes]:
    """Returns the decompressed bytes, in pieces; other tasks run between them."""
    found: list[bytes] = []
    try:
        for start in range(0, len(data), PIECE):
            found.append(decoder.feed(data[start : start + PIECE]))
            await asyncio.sleep(0)
            while decoder.pending:
                found.append(decoder.feed())
                await asyncio.sleep(0)
        if last:
            decoder.close()
    except TooLarge:
        raise too_large(limit, f", or more than {RATIO} times as large as it was sent") from None
    except Truncated:
        message = "The request body is not compressed as its header Content-Encoding says, or it is incomplete."
        raise InvalidRequest(message, code="invalid_content_encoding") from None
    return found


async def discard(request_body: RequestBody, seconds: float, limit: int) -> None:
    """Reads and discards a body, for at most this many seconds and bytes."""
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while size < limit and request_body.more:
                await request_body.wait()
                if request_body.over:
                    return
                size += len(request_body.read())
    except TimeoutError:
        pass


def too_large(limit: int, reason: str = "") -> InvalidRequest:
    """Returns the 413 error; the connection is closed so that the rest need not be read."""
    return InvalidRequest(
        f"The request body is larger than {limit} bytes{reason}.",
        status=413,
        code="request_too_large",
        headers={"connection": "close"},
    )
