"""What a demo backend was asked and how its connections ended, kept for whoever wants to look."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from gateway.types import Json

KEPT: Final = 1000


class RecordedRequest(msgspec.Struct, frozen=True):
    """One request as it came: `summary` is the body as JSON (a protobuf body decoded), `body_hex` its very bytes."""

    method: str
    path: str
    headers: Mapping[str, str]
    summary: Json
    body_hex: str = ""


class Recorder:
    """The newest requests, oldest first; how many answers are under way; how many the client did not wait for.

    `closing` keeps the cancellations of our own shutdown from counting as the client's.
    """

    def __init__(self) -> None:
        self.requests: deque[RecordedRequest] = deque(maxlen=KEPT)
        self.active = 0
        self.aborted = 0
        self.closing = False
        self._ended = asyncio.Event()

    def record(self, request: web.BaseRequest, summary: Json, body: bytes = b"") -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(RecordedRequest(request.method, request.path_qs, headers, summary, body.hex()))

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Count an answer as under way, and as aborted when the client leaves before its end.

        aiohttp cancels the task of a client that has left. A write that notices it first fails instead; it ends as
        a cancellation too, so that nobody logs a client's leaving as an error.
        """
        self.active += 1
        try:
            yield
        except (asyncio.CancelledError, ConnectionError) as left:
            self.aborted += not self.closing
            raise asyncio.CancelledError from left
        finally:
            self.active -= 1
            self._ended.set()

    async def idle(self) -> None:
        """Wait until no answer is under way."""
        while self.active:
            self._ended.clear()
            await self._ended.wait()

    def show(self) -> Json:
        """Everything as JSON."""
        requests: list[Json] = [msgspec.to_builtins(request) for request in self.requests]
        return {"requests": requests, "active": self.active, "aborted": self.aborted}
