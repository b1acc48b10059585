"""Serves a recording on a loopback port: a fake backend, or a fake gateway, with the recorded bytes at their times."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from gateway.demo.player.connection import Http1Server
from gateway.demo.player.endpoint import Connection, read_body
from gateway.demo.player.http2_connection import Http2Server
from gateway.demo.player.playback import SERVED, Cut, Part, Response, Wait, json_answer, play
from gateway.recording.lines import BytesLine, HeadLine, RecordingError, Side
from gateway.recording.matching import Matcher, Matching, Miss, RecordedRequest, RecordedSide
from gateway.recording.recording import Interaction, Recording

# What the connection of the fake decides, or the recording no longer fits.
_OWN_HEADERS: Final = frozenset(
    ["content-length", "content-encoding", "transfer-encoding", "connection", "date", "server", "keep-alive"]
)


# Gets a request that no recorded one fits, and returns it with the response to play; a Miss where there is none.
Forward: TypeAlias = Callable[[RecordedRequest, Request], Awaitable[Interaction | Miss]]


class Playback:
    """A served recording. `base_url` is its address; `requests` are those that came, `misses` those without a
    response."""

    def __init__(self, matcher: Matcher, side: RecordedSide, speed: float, forward: Forward | None = None) -> None:
        self.base_url = ""
        self.requests: list[RecordedRequest] = []
        self.misses: list[Miss] = []
        self.matcher = matcher
        self._side = side
        self._speed = speed
        self._forward = forward
        self._faults: list[tuple[str, int]] = []

    def fail(self, how: str, after: int = 0) -> None:
        """Makes the next response break behind so many reads: `truncated` (the body ends), `reset`, or `stall`. Raises
        ValueError for another word."""
        if how not in ("truncated", "reset", "stall"):
            raise ValueError(f"a response can fail by truncated, reset or stall, not by {how!r}")
        self._faults.append((how, after))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Implements ASGI."""
        # Removed from the scope to avoid a reference cycle, which only the garbage collector would free.
        connection: Connection = scope["state"].pop("connection")
        connection.response_task = asyncio.current_task()
        try:
            await self._answer(Request(scope, receive), connection, send)
        except asyncio.CancelledError:
            # The client has disconnected, which is no error of this server.
            return
        finally:
            connection.response_task = None

    async def _answer(self, request: Request, connection: Connection, send: Send) -> None:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        asked = RecordedRequest(request.method, target, await read_body(request))
        self.requests.append(asked)
        found = self.matcher.find(asked)
        if isinstance(found, Miss) and self._forward is not None:
            found = await self._forward(asked, request)
        if isinstance(found, Miss):
            self.misses.append(found)
            error = {
                "error": {"message": found.message, "type": "invalid_request_error", "code": "no_recorded_response"}
            }
            await play(json_answer(msgspec.json.decode(msgspec.json.encode(error)), 404), send, connection.cut)
            return
        response = recorded_response(found, self._side, self._speed)
        if response is None:
            await connection.cut(True)
            return
        if self._faults:
            response = _broken(response, *self._faults.pop(0))
        await play(response, send, connection.cut)


def recorded_response(interaction: Interaction, side: RecordedSide, speed: float) -> Response | None:
    """Returns the recorded response of one side with its pauses; `speed` 2 halves them, 0 leaves them out. None: there
    was none, and the connection broke instead."""
    head = interaction.head if side == "backend" else interaction.client_head
    if head is None:
        return None
    headers = {name: value for name, value in head.headers.items() if name not in _OWN_HEADERS}
    close = interaction.close if side == "backend" else None
    trailers = close.trailers if close is not None and close.trailers else None
    return Response((*_parts(interaction, head, side, speed),), head.status, headers, trailers=trailers)


def _parts(interaction: Interaction, head: HeadLine, side: RecordedSide, speed: float) -> Iterator[Part]:
    t = head.t
    for step in interaction.steps:
        if isinstance(step, BytesLine) and step.side == side_of(side):
            if speed and step.t > t:
                yield Wait((step.t - t) / 1000 / speed)
            t = max(t, step.t)
            yield step.data.content
    cut = None if interaction.end is None else interaction.end.cut
    if side == "backend" and cut in ("fin", "reset"):
        yield Cut("fin" if cut == "fin" else "reset")
    elif side == "backend" and cut == "timeout":
        yield Wait()


def side_of(side: RecordedSide) -> Side:
    """Returns the side of the lines in a recording."""
    return "backend" if side == "backend" else "client"


def _broken(response: Response, how: str, after: int) -> Response:
    kept: list[Part] = []
    for part in response.parts:
        if isinstance(part, bytes) and sum(isinstance(one, bytes) for one in kept) >= after:
            break
        kept.append(part)
    end: Part = Wait() if how == "stall" else Cut("fin" if how == "truncated" else "reset")
    return msgspec.structs.replace(response, parts=(*kept, end))


@asynccontextmanager
async def serve_recording(
    recording: Recording,
    side: RecordedSide = "backend",
    matching: Matching = "shape",
    speed: float = 1.0,
    port: int = 0,
    forward: Forward | None = None,
) -> AsyncIterator[Playback]:
    """Serves the responses of one side until the block ends. `forward` gets the requests that none fits. Raises
    RecordingError for a recording without any response, with a status that is none, and with both versions of HTTP."""
    interactions = recording.interactions()
    playback = Playback(Matcher(interactions, side, matching), side, speed, forward)
    if not playback.matcher.unused and forward is None:
        raise RecordingError(f"The recording has no response of the side {side}.")
    for one in playback.matcher.unused:
        head = one.head if side == "backend" else one.client_head
        if head is not None and head.status not in SERVED:
            raise RecordingError(f"The response to the request {one.x} has the status {head.status}: not one to serve.")
    versions = (
        {one.sent.http2 for one in playback.matcher.unused if one.sent is not None} if side == "backend" else {False}
    )
    if len(versions) > 1:
        raise RecordingError("The recording has requests over HTTP/1.1 and over HTTP/2; serve them from two files.")
    server = Http2Server(playback) if versions == {True} else Http1Server(playback)
    listening = await asyncio.get_running_loop().create_server(server.connect, "127.0.0.1", port)
    try:
        host, bound = listening.sockets[0].getsockname()[:2]
        playback.base_url = f"http://{host}:{bound}"
        yield playback
    finally:
        listening.close()
        connections = server.connections()
        for connection in connections:
            connection.transport.abort()
        await asyncio.gather(*(connection.lost.wait() for connection in connections))
        if server.tasks:
            await asyncio.wait(server.tasks)
        await listening.wait_closed()
