"""A request's answer as a value in, an ASGI endpoint that plays it out."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.demo.connection import Connection
from gateway.demo.playback import Response, play
from gateway.demo.recorder import Recorder

Answer = Callable[[Request], Awaitable[Response]]
_LARGEST_BODY: Final = 64 * 1024 * 1024
_TOO_LARGE: Final = Response((b"The body is too large.",), 413, {"content-type": "text/plain", "connection": "close"})


class _TooLarge(Exception):
    """A body that is not read to its end."""


def get(path: str, answer: Answer) -> Route:
    """A page to be looked at."""
    return Route(path, _Endpoint(answer, None), methods=["GET"])


def post(path: str, answer: Answer, watched: Recorder | None = None) -> Route:
    """A request with a body; `watched` counts its answers."""
    return Route(path, _Endpoint(answer, watched), methods=["POST"])


async def read_body(request: Request) -> bytes:
    """The whole body, of 64 MiB at most; a larger one is answered with 413 instead."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_BODY:
                raise _TooLarge
    except ClientDisconnect as left:
        # Before there was anything to cancel.
        raise asyncio.CancelledError from left
    return bytes(body)


class _Endpoint:
    """An object, since Starlette takes a function for one that returns an answer of its own kind."""

    def __init__(self, answer: Answer, watched: Recorder | None) -> None:
        self._answer = answer
        self._watched = watched

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Taken out, or each would keep the other for the collector.
        connection: Connection = scope["state"].pop("connection")
        connection.answering = asyncio.current_task()
        try:
            async with self._watch():
                await play(await self._answered(Request(scope, receive)), send, connection.cut)
        except asyncio.CancelledError:
            # The client has left, which is nothing that uvicorn should log as an error.
            return
        finally:
            connection.answering = None

    def _watch(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._watched is None else self._watched.watch()

    async def _answered(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except _TooLarge:
            return _TOO_LARGE
