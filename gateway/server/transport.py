"""Requests -> connections of one pool for each address -> answers read piece by piece; every fault as a BackendError.

Redirects are not followed (they would carry the key away), environment proxies and cookies are not used, compression is
not asked for (a bomb could not be capped). Whatever may have reached a backend is not sent twice: it may have run.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from gateway.errors import BackendError, BackendProtocolError, BackendTruncated, BackendUnavailable
from gateway.server.http.address import Address, Url
from gateway.server.http.connection import Connection
from gateway.server.http.dial import Dialer
from gateway.server.http.errors import (
    DialedTooLong,
    HttpError,
    HungUp,
    NotHttp,
    TooLarge,
    Truncated,
    Unreachable,
    Unsent,
    Untrusted,
)
from gateway.server.http.pool import Pool
from gateway.server.http.request import Lines, encode_lines, encode_request

NO_RETRY: Final[Mapping[str, str]] = {"x-should-retry": "false"}
ERROR_BODY_CAP: Final = 64 * 1024
# A backend that is just being started again listens soon.
PAUSE_S: Final = 0.1


@lru_cache
def gateway_version() -> str:
    """The installed version."""
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return "0"


def encode_head(method: str, url: Url, headers: Mapping[str, str]) -> Lines:
    """The head of a request, with what the gateway says of itself unless the headers say otherwise. Raises ValueError
    for headers that cannot be sent."""
    own = {"user-agent": f"dragoman/{gateway_version()}", "accept-encoding": "identity"}
    return encode_lines(method, url, [*own.items(), *headers.items()])


def truncated() -> BackendTruncated:
    """The body ended, or its framing broke, before the answer was complete."""
    return BackendTruncated("The backend's answer ended before it was complete.")


def _hung_up() -> BackendError:
    return BackendUnavailable("The backend closed the connection before it answered.")


_FAULTS: Final[Mapping[type[HttpError], Callable[[], BackendError]]] = {
    Unreachable: lambda: BackendUnavailable("The backend could not be reached."),
    DialedTooLong: lambda: BackendUnavailable("The backend did not accept a connection in time."),
    Untrusted: lambda: BackendUnavailable(
        "No trusted TLS connection to the backend could be made.", code="upstream_tls_error", headers=NO_RETRY
    ),
    HungUp: _hung_up,
    Unsent: _hung_up,
    NotHttp: lambda: BackendProtocolError("The backend's answer is not HTTP.", code="upstream_protocol_error"),
    Truncated: truncated,
    TooLarge: lambda: BackendError("The backend's answer is larger than allowed.", code="upstream_response_too_large"),
}


def _told(error: HttpError) -> BackendError:
    return _FAULTS[type(error)]()


def _nothing() -> None:
    pass


class Answer:
    """The head of a backend's answer, and its body piece by piece. Header names are lower case."""

    __slots__ = ("_connection", "_lent", "_pool", "headers", "status")

    def __init__(self, connection: Connection, pool: Pool) -> None:
        self.status = connection.response.status
        self.headers = connection.response.headers
        self._connection = connection
        self._pool = pool
        self._lent = True

    async def read(self) -> bytes:
        """All bytes that have arrived, at least one; empty at the end. Raises BackendError."""
        connection = self._connection
        response = connection.response
        try:
            while not (data := response.take()) and not response.ended:
                await connection.arrival()
        except HttpError as error:
            raise _told(error) from error.__cause__
        if connection.paused:
            connection.resume()
        return data

    async def read_error(self) -> bytes:
        """The beginning of an error's body; an error whose body breaks off is still that error."""
        body = b""
        try:
            while len(body) < ERROR_BODY_CAP and (piece := await self.read()):
                body += piece
        except BackendError:
            pass
        return body[:ERROR_BODY_CAP]

    @property
    def ended(self) -> bool:
        """Whether all of it has arrived."""
        return self._connection.response.ended

    async def settle(self, seconds: float) -> None:
        """Give the framing's last bytes a moment to arrive, so that the connection can be used again."""
        try:
            async with asyncio.timeout(seconds):
                while await self.read():
                    pass
        except (TimeoutError, BackendError):
            pass

    def close(self) -> None:
        """Let go. A connection whose answer did not come to its end is closed."""
        if self._lent:
            self._lent = False
            self._pool.give(self._connection, self.headers.get("keep-alive", ""))


class Transport:
    """The data-plane client. `async with` it; all backends share its pools."""

    def __init__(self, max_response: int) -> None:
        self._max_response = max_response
        self._pools: dict[Address, Pool] = {}

    async def __aenter__(self) -> "Transport":
        self._loop = asyncio.get_running_loop()
        self._dialer = Dialer(self._loop)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))

    async def send(
        self,
        lines: Lines,
        body: bytes,
        connect: float,
        *,
        more: bytes = b"",
        on_try: Callable[[], None] = _nothing,
        again: bool = True,
    ) -> Answer:
        """Send a request and wait for the head of its answer; `connect` limits name look-up, TCP and TLS, in seconds.
        How long the head may take is the caller's business. `more` are further header lines. Raises BackendError.

        `again`: while none of the request has reached the backend it may be tried once more. `on_try` is called before
        each try."""
        request = encode_request(lines, body, more)
        pool = self._pools.get(lines.address) or self._pools.setdefault(lines.address, Pool(self._loop))
        now = self._loop.time()
        due = now + connect
        while True:
            on_try()
            try:
                connection = pool.take(now) or await self._dialer.dial(lines.address, due, pool.connection)
                try:
                    connection.ask(request, self._max_response, lines.last)
                    response = connection.response
                    while not response.status:
                        await connection.arrival()
                    answer = Answer(connection, pool)
                    if 300 <= answer.status < 400 or "content-encoding" in answer.headers:
                        _check_head(answer)
                    return answer
                except BaseException:  # also a cancellation: a connection that is being answered can serve nobody else
                    connection.abort()
                    raise
            except (Unreachable, Unsent) as error:
                if not again or self._loop.time() + PAUSE_S >= due:
                    raise _told(error) from error.__cause__
                again = False
            except HttpError as error:
                raise _told(error) from error.__cause__
            await asyncio.sleep(PAUSE_S)
            now = self._loop.time()


def _check_head(answer: Answer) -> None:
    if 300 <= answer.status < 400:
        raise BackendError("The backend answered with a redirect, which is never followed.", code="upstream_redirect")
    coding = answer.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        raise BackendProtocolError(
            "The backend compressed its answer although identity was asked for.", code="upstream_invalid_response"
        )
