"""What arrives of a request's body -> the whole of it, read only as far as it may be large."""

import asyncio
from collections.abc import Mapping
from typing import Final

from gateway.errors import InvalidRequest
from gateway.server.intake import Intake
from gateway.server.watch import ClientGone

# How long a body may take to arrive.
BODY_S: Final = 120


async def read_body(intake: Intake, head: Mapping[bytes, bytes], limit: int) -> bytes:
    """Raises InvalidRequest 413 as soon as the body is known to be too large, ClientGone when the client leaves."""
    declared = head.get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > 18 or int(declared) > limit):
        raise too_large(limit)
    pieces: list[bytes] = []
    size = 0
    while True:
        if not intake.news:
            await intake.wait()
        if intake.over:
            raise ClientGone
        piece = intake.take()
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
        if not intake.more:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def discard(intake: Intake, seconds: float, limit: int) -> None:
    """Read a body that nobody wants, for at most this long and this far."""
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while size < limit and intake.more:
                await intake.wait()
                if intake.over:
                    return
                size += len(intake.take())
    except TimeoutError:
        pass


def too_large(limit: int) -> InvalidRequest:
    """The 413; the connection is closed so that the rest need not be read."""
    return InvalidRequest(
        f"The request body is larger than {limit} bytes.",
        status=413,
        code="request_too_large",
        headers={"connection": "close"},
    )
