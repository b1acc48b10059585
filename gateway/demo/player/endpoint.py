"""Serves a response value as an ASGI endpoint."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final, Protocol, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.core.conversation import Json
from gateway.demo.player.playback import Response, json_answer, play
from gateway.demo.player.recorder import Recorder

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
_LARGEST_BODY: Final = 64 * 1024 * 1024
_TOO_LARGE: Final = Response((b"The body is too large.",), 413, {"content-type": "text/plain", "connection": "close"})


class Connection(Protocol):
    """What carries a response: a connection of HTTP/1.1, or a stream of HTTP/2.

    `response_task` is cancelled when the client disconnects. (Any: only the task itself knows its result.)
    """

    response_task: asyncio.Task[Any] | None

    async def cut(self, reset: bool) -> None:
        """Closes the connection now, by a reset or by a FIN, and returns when it is closed."""
        ...


class Refused(Exception):
    """The request is invalid; the message is the text of the error. `param` names the field, if the wire tells."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status


class _TooLarge(Exception):
    """A body that exceeds the limit and is not read to its end."""


def get(path: str, document: Callable[[], Json]) -> Route:
    """Builds the route of a GET request, which is answered with the value of `document`."""

    async def answer(request: Request) -> Response:
        return json_answer(document())

    return Route(path, Endpoint(answer, None), methods=["GET"])


def post(path: str, handler: Handler, watched: Recorder | None = None) -> Route:
    """Builds the route of a request with a body; `watched` counts its responses."""
    return Route(path, Endpoint(handler, watched), methods=["POST"])


async def read_body(request: Request) -> bytes:
    """Reads the whole body, of 64 MiB at most; a larger one gets a 413."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_BODY:
                raise _TooLarge
    except ClientDisconnect as left:
        # The client disconnected before the task of the response was registered for cancellation.
        raise asyncio.CancelledError from left
    return bytes(body)


class Endpoint:
    """Serves what a handler returns. A class, because Starlette wraps a plain function as one that returns a Starlette
    response."""

    def __init__(self, handler: Handler, watched: Recorder | None) -> None:
        self.handler = handler
        self._watched = watched

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Removed from the scope to avoid a reference cycle, which only the garbage collector would free.
        connection: Connection = scope["state"].pop("connection")
        connection.response_task = asyncio.current_task()
        try:
            async with self._watch():
                await play(await self._answered(Request(scope, receive)), send, connection.cut)
        except asyncio.CancelledError:
            # The client has disconnected, which uvicorn must not log as an error.
            return
        finally:
            connection.response_task = None

    def _watch(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._watched is None else self._watched.watch()

    async def _answered(self, request: Request) -> Response:
        try:
            return await self.handler(request)
        except _TooLarge:
            return _TOO_LARGE
