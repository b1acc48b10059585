"""The control: an ASGI application that only forwards bytes through the same HTTP server and client.

The cost of a gateway beyond it is the gateway's own work. `uvicorn bench.relay:app`
"""

import os
from typing import Final

from starlette.types import Receive, Scope, Send

from gateway.server.upstream.fd_limits import MOST
from gateway.server.upstream.http.origin import read_url
from gateway.server.upstream.transport import Transport, encode_head

BACKEND: Final = read_url(os.environ.get("BENCH_BACKEND", "http://127.0.0.1:9200") + "/v1/chat/completions")
HEAD: Final = encode_head("POST", BACKEND, {"content-type": "application/json"})
TRANSPORT: Final = Transport(max_response=2**30, last_descriptor=MOST)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Relays one request."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    answer = await TRANSPORT.send(HEAD, body, connect=5)
    try:
        kind = answer.headers["content-type"].encode()
        await send({"type": "http.response.start", "status": answer.status, "headers": [(b"content-type", kind)]})
        while piece := await answer.read():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        answer.close()
    await send({"type": "http.response.body", "body": b""})


async def _live(receive: Receive, send: Send) -> None:
    await receive()
    async with TRANSPORT:
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
