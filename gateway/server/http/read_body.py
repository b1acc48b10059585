"""Reads the whole body of a request, up to a size limit."""

import asyncio
from collections.abc import Mapping
from typing import Final

from gateway.core.errors import InvalidRequest
from gateway.server.http.request_body import RequestBody
from gateway.server.upstream.deadlines import ClientDisconnected

# The time within which a body must arrive.
BODY_S: Final = 120


async def read_body(request_body: RequestBody, head: Mapping[bytes, bytes], limit: int) -> bytes:
    """Returns the whole body. Raises InvalidRequest 413 as soon as the body is known to be too large,
    ClientDisconnected when the client disconnects."""
    declared = head.get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > 18 or int(declared) > limit):
        raise too_large(limit)
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
        pieces.append(piece)
        if not request_body.more:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


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


def too_large(limit: int) -> InvalidRequest:
    """Returns the 413 error; the connection is closed so that the rest need not be read."""
    return InvalidRequest(
        f"The request body is larger than {limit} bytes.",
        status=413,
        code="request_too_large",
        headers={"connection": "close"},
    )
