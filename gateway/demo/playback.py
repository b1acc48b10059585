"""Bytes, silences and cuts in, one HTTP answer on a real socket out."""

import asyncio
import socket
import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import msgspec
from aiohttp import web

from gateway.types import Json

# Longer than anybody waits: a stalled answer ends when its client leaves or the backend stops.
FOREVER: Final = 3600.0
STREAM: Final = MappingProxyType({"content-type": "text/event-stream"})
_RESET: Final = struct.pack("ii", 1, 0)
# A reset overtakes bytes that the client has not read yet, so it gets a moment to read them.
_GRACE: Final = 0.05


class Wait(msgspec.Struct, frozen=True):
    """Nothing is sent for a while."""

    seconds: float = FOREVER


class Cut(msgspec.Struct, frozen=True):
    """The answer ends here: by a TCP reset, by a FIN without the body's end, or as if it were complete."""

    how: Literal["reset", "fin", "end"]


Part: TypeAlias = bytes | Wait | Cut


class Response(msgspec.Struct, frozen=True):
    """A status, headers and what the body does; `hold` is how long not even the status comes."""

    parts: tuple[Part, ...] | Iterable[Part] = ()
    status: int = 200
    headers: Mapping[str, str] = STREAM
    hold: float = 0.0


def json_answer(body: Json, status: int = 200) -> web.Response:
    """A whole answer that holds one JSON value."""
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")


async def play(request: web.Request, response: Response, delay: float = 0.0) -> web.StreamResponse:
    """Send every part as a write of its own, `delay` seconds apart."""
    await asyncio.sleep(response.hold)
    answer = web.StreamResponse(status=response.status, headers=response.headers)
    await answer.prepare(request)
    for part in response.parts:
        match part:
            case bytes():
                await answer.write(part)
                if delay:
                    await asyncio.sleep(delay)
            case Wait(seconds):
                await asyncio.sleep(seconds)
            case Cut("end"):
                break
            case Cut(how):
                await _cut(request, how)
                return answer
    await answer.write_eof()
    return answer


async def _cut(request: web.Request, how: str) -> None:
    await asyncio.sleep(_GRACE)
    if (transport := request.transport) is None:
        return
    if how == "reset":
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()
