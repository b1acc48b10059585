"""Bytes, silences and cuts in, one HTTP answer on a real socket out."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import msgspec
from starlette.types import Send

from gateway.types import Json

# Longer than anybody waits: a stalled answer ends when its client leaves or the backend stops.
FOREVER: Final = 3600.0
STREAM: Final = MappingProxyType({"content-type": "text/event-stream"})
# An answer of these ends with its head.
_BODILESS: Final = (204, 304)
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
    """A status, headers and what the body does, every part a write of its own and followed by a pause of `delay`
    seconds; `hold` is how long not even the status comes."""

    parts: tuple[Part, ...] | Iterable[Part] = ()
    status: int = 200
    headers: Mapping[str, str] = STREAM
    hold: float = 0.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        if not 200 <= self.status <= 599:
            raise ValueError(f"{self.status} is no status of an answer")


def json_answer(body: Json, status: int = 200) -> Response:
    """A whole answer that holds one JSON value."""
    text = msgspec.json.encode(body)
    return Response((text,), status, {"content-type": "application/json", "content-length": str(len(text))})


async def play(response: Response, send: Send, cut: Callable[[bool], Awaitable[None]]) -> None:
    """Send it all; `cut` ends the connection, by a reset if it is asked to."""
    await asyncio.sleep(response.hold)
    headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
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
    await send({"type": "http.response.body"})
