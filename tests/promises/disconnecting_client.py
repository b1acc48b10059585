"""Sends a request and disconnects before the end of its response."""

import asyncio
import json
from typing import Final

from gateway.testing.gateway import RunningGateway, hello

# Half a second, if the process does not stand still in between.
TURNS: Final = 50


def chat_request(streams: bool) -> bytes:
    """The bytes of a request."""
    body = json.dumps({**hello(), "stream": streams}).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (len(body), body)
    )


async def leave(gateway: RunningGateway, asked: asyncio.Event, *, streams: bool, begun: bool, resets: bool) -> None:
    """Ask, and leave once the backend has been asked; a client that streams reads the first text, if it has `begun`."""
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(chat_request(streams))
    async with asyncio.timeout(30):
        await asked.wait()
    if streams and begun:
        await reader.readuntil(b"one")
    else:
        await asyncio.sleep(0.1)  # until what the backend has sent has been read
    if resets:
        writer.transport.abort()
    else:
        writer.close()


async def let_go(event: asyncio.Event) -> bool:
    """Whether the event has happened within some turns of the event loop; a process that stands still makes none."""
    for _ in range(TURNS):
        if event.is_set():
            break
        await asyncio.sleep(0.01)
    return event.is_set()
