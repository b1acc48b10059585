"""Records the requests of a demo backend and how its connections ended, for inspection."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from starlette.requests import Request

from gateway.core.conversation import Json

KEPT: Final = 1000
KEPT_BYTES: Final = 32 * 1024 * 1024
# Headers with credentials are hidden, because every local process can read a loopback port.
_SECRET: Final = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "x-goog-api-key"})


def json_body(body: bytes) -> Json:
    """Returns a body of JSON for display; None where it is none."""
    try:
        shown: Json = msgspec.json.decode(body)
    except ValueError:
        return None
    return shown


class RecordedRequest(msgspec.Struct, frozen=True):
    """One request as received. `read` decodes a body for display, and is called only on display."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    read: Callable[[bytes], Json]

    @property
    def summary(self) -> Json:
        """The body as JSON (a protobuf body decoded)."""
        return self.read(self.body)

    @property
    def body_hex(self) -> str:
        """The unchanged bytes as hexadecimal."""
        return self.body.hex()

    def as_json(self) -> Json:
        """Returns everything as JSON, without secrets."""
        headers: dict[str, Json] = {
            name: "(hidden)" if name in _SECRET else value for name, value in self.headers.items()
        }
        return {
            "method": self.method,
            "path": self.path,
            "headers": headers,
            "summary": self.summary,
            "body_hex": self.body_hex,
        }


class Recorder:
    """The newest requests, oldest first; the number of responses in progress; the number that a client aborted.

    While `closing` is set, cancellations belong to the shutdown and do not count as the client's.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self.requests: deque[RecordedRequest] = deque()
        self.count = 0
        self.active = 0
        self.aborted = 0
        self.closing = False
        self._bytes = 0
        self._kept_bytes = kept_bytes
        self._ended = asyncio.Event()

    def record(self, request: Request, body: bytes, read: Callable[[bytes], Json]) -> None:
        """Records a request; the oldest one is dropped when the record is full."""
        path = b"?".join(part for part in (request.scope["raw_path"], request.scope["query_string"]) if part).decode()
        self.requests.append(RecordedRequest(request.method, path, dict(request.headers.items()), body, read))
        self.count += 1
        self._bytes += len(body)
        while len(self.requests) > 1 and (len(self.requests) > KEPT or self._bytes > self._kept_bytes):
            self._bytes -= len(self.requests.popleft().body)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Counts a response as in progress, and as aborted when it is cancelled because its client has disconnected."""
        self.active += 1
        try:
            yield
        except asyncio.CancelledError:
            self.aborted += not self.closing
            raise
        finally:
            self.active -= 1
            self._ended.set()

    async def idle(self) -> None:
        """Waits until no response is in progress."""
        while self.active:
            self._ended.clear()
            await self._ended.wait()

    def as_json(self) -> Json:
        """Returns everything as JSON."""
        requests: list[Json] = [request.as_json() for request in self.requests]
        return {"requests": requests, "active": self.active, "aborted": self.aborted}
