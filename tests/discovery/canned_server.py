"""A server on a real socket that gives the same bytes for a path each time."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"


def reply(body: Any, status: int = 200, **headers: str) -> bytes:
    """The bytes of a response with JSON. (Any: JSON.)"""
    data = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def models(*names: str, owner: str | None = None) -> bytes:
    """A list of models in OpenAI's form."""
    entry = {} if owner is None else {"owned_by": owner}
    return reply({"object": "list", "data": [{"id": name, "object": "model", **entry} for name in names]})


@asynccontextmanager
async def canned_server(
    paths: Mapping[str, bytes], default: bytes = NOT_FOUND, drip: bytes = b""
) -> AsyncIterator[str]:
    """Serve until the block ends; yields the address. After each response `drip` is sent again and again."""

    writers: set[asyncio.StreamWriter] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while request := await reader.readuntil(b"\r\n\r\n"):
                writer.write(paths.get(request.split()[1].decode(), default))
                await writer.drain()
                while drip:
                    writer.write(drip)
                    await writer.drain()
                    await asyncio.sleep(0.01)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.close()
        for writer in writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()
