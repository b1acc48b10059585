"""The control: an ASGI application that hands bytes on through the same HTTP server and client, and does nothing else.

What a gateway costs beyond it is its own work. `uvicorn bench.relay:app`
"""

import os
from typing import Final

import aiohttp
from starlette.types import Receive, Scope, Send

BACKEND: Final = os.environ.get("BENCH_BACKEND", "http://127.0.0.1:9200") + "/v1/chat/completions"
_sessions: Final[list[aiohttp.ClientSession]] = []


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Relay one request."""
    if scope["type"] != "http":
        return
    if not _sessions:
        connector = aiohttp.TCPConnector(limit=0)
        _sessions.append(aiohttp.ClientSession(connector=connector, auto_decompress=False))
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    async with _sessions[0].post(BACKEND, data=body, headers={"content-type": "application/json"}) as answer:
        kind = answer.headers["content-type"].encode()
        await send({"type": "http.response.start", "status": answer.status, "headers": [(b"content-type", kind)]})
        async for piece in answer.content.iter_any():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
