"""Plays bytes, pauses and connection cuts as one HTTP response on a real socket."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import msgspec
from starlette.types import Send

from gateway.core.conversation import Json

# Longer than any client's timeout: a stalled response ends when its client disconnects or the backend stops.
FOREVER: Final = 3600.0
STREAM: Final = MappingProxyType({"content-type": "text/event-stream"})
# A response with one of these statuses has no body.
_BODILESS: Final = (204, 304)
# A reset discards bytes that the client has not read yet, so the client gets a moment to read them.
_GRACE: Final = 0.05


class Wait(msgspec.Struct, frozen=True):
    """Nothing is sent for this time."""

    seconds: float = FOREVER


class Cut(msgspec.Struct, frozen=True):
    """The response ends here: by a TCP reset, by a FIN before the end of the body, or as if it were complete."""

    how: Literal["reset", "fin", "end"]


class Reset(msgspec.Struct, frozen=True):
    """The stream of the response ends here, by a RST_STREAM with this error code. Only HTTP/2 has it."""

    code: int


class Frames(msgspec.Struct, frozen=True):
    """Frames of HTTP/2 that are sent as they are, outside the state of the connection; as the first part, instead of
    the head. `write` builds them for the number of the stream."""

    write: Callable[[int], bytes]


Part: TypeAlias = bytes | Wait | Cut | Reset | Frames


# The statuses that a response may have.
SERVED: Final = range(200, 600)


class Response(msgspec.Struct, frozen=True):
    """A status, headers, the parts of the body, and trailers. Every part is a separate write, followed by a pause of
    `delay` seconds; `hold` is the delay before the status."""

    parts: tuple[Part, ...] | Iterable[Part] = ()
    status: int = 200
    headers: Mapping[str, str] = STREAM
    hold: float = 0.0
    delay: float = 0.0
    trailers: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if self.status not in SERVED:
            raise ValueError(f"{self.status} is not a response status")


def json_answer(body: Json, status: int = 200) -> Response:
    """Builds a whole response that holds one JSON value."""
    text = msgspec.json.encode(body)
    return Response((text,), status, {"content-type": "application/json", "content-length": str(len(text))})


async def play(response: Response, send: Send, cut: Callable[[bool], Awaitable[None]]) -> None:
    """Sends the response; `cut` closes the connection, by a reset if its argument is true."""
    await asyncio.sleep(response.hold)
    trailers = response.trailers
    start = {"type": "http.response.start", "status": response.status, "headers": _encoded(response.headers)}
    await send({**start, "trailers": trailers is not None})
    for part in () if response.status in _BODILESS else response.parts:
        match part:
            case bytes():
                await send({"type": "http.response.body", "body": part, "more_body": True})
                if response.delay:
                    await asyncio.sleep(response.delay)
            case Wait(seconds):
                await asyncio.sleep(seconds)
            case Cut("end"):
                break
            case Cut(how):
                await asyncio.sleep(_GRACE)
                return await cut(how == "reset")
            case Reset(code):
                return await send({"type": "http2.reset", "code": code})
            case Frames(write):
                await send({"type": "http2.frames", "write": write})
    await send({"type": "http.response.body"})
    if trailers is not None:
        await send({"type": "http.response.trailers", "headers": _encoded(trailers)})


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
