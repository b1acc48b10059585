"""Sends requests over one pool per address and reads responses piece by piece; every fault is a BackendError.

Redirects are not followed (they would leak the key), environment proxies and cookies are not used, compression is not
requested, and an unrequested compression is decoded within bounds. A request that may have reached a backend is not
sent twice: it may have run.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from gateway.core.backend_status import NO_RETRY
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated, BackendUnavailable
from gateway.server.upstream.http.connect import Connector
from gateway.server.upstream.http.errors import (
    ConnectError,
    ConnectTimeout,
    HttpError,
    HttpProtocolError,
    RemoteDisconnected,
    StaleConnection,
    TLSError,
    TooLarge,
    Truncated,
)
from gateway.server.upstream.http.origin import Origin, Url
from gateway.server.upstream.http1.backend_connection import BackendConnection
from gateway.server.upstream.http1.content_coding import ContentDecoder
from gateway.server.upstream.http1.pool import ConnectionPool
from gateway.server.upstream.http1.request_head import Lines, encode_lines, encode_request
from gateway.server.upstream.http1.response_decoder import ResponseDecoder

ERROR_BODY_CAP: Final = 64 * 1024
# A backend that is restarting listens again soon.
PAUSE_S: Final = 0.1


@lru_cache
def gateway_version() -> str:
    """Returns the installed version."""
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return "0"


def encode_head(method: str, url: Url, headers: Mapping[str, str]) -> Lines:
    """Encodes the head of a request, with the gateway's default headers unless the given ones override them. Raises
    ValueError for headers that cannot be sent."""
    own = {"user-agent": f"dragoman/{gateway_version()}", "accept-encoding": "identity"}
    return encode_lines(method, url, [*own.items(), *headers.items()])


def truncated() -> BackendTruncated:
    """Returns the error for a body that ended, or whose framing broke, before the response was complete."""
    return BackendTruncated("The backend's response ended before it was complete.")


def _hung_up() -> BackendError:
    return BackendUnavailable("The backend closed the connection before it responded.")


_FAULTS: Final[Mapping[type[HttpError], Callable[[], BackendError]]] = {
    ConnectError: lambda: BackendUnavailable("The backend could not be reached."),
    ConnectTimeout: lambda: BackendUnavailable("The backend did not accept a connection in time (timeouts.connect)."),
    TLSError: lambda: BackendUnavailable(
        "No trusted TLS connection to the backend could be made.", code="upstream_tls_error", headers=NO_RETRY
    ),
    RemoteDisconnected: _hung_up,
    StaleConnection: _hung_up,
    HttpProtocolError: lambda: BackendProtocolError(
        "The backend's response is not HTTP.", code="upstream_protocol_error"
    ),
    Truncated: truncated,
    TooLarge: lambda: BackendError(
        "The backend's response is larger than allowed.", code="upstream_response_too_large"
    ),
}


def _backend_error(error: HttpError) -> BackendError:
    return _FAULTS[type(error)]()


def _nothing(*_: int) -> None:
    pass


def _decoded(response: ResponseDecoder, coded: ContentDecoder) -> bytes:
    # Pending compressed bytes come first: further input would only wait in the decoder.
    data = coded.feed(b"" if coded.pending else response.read())
    if not data and response.ended:
        coded.close()
    return data


def _passed_over(response: ResponseDecoder) -> bytes:
    response.read()
    return b""


class BackendResponse:
    """The head of a backend's response, and its body piece by piece. Header names are lower case. `compressed`: the
    body was sent compressed, and `read` returns what it was."""

    __slots__ = ("_coded", "_connection", "_kept", "_lent", "_pool", "_read", "compressed", "headers", "status")

    def __init__(self, connection: BackendConnection, pool: ConnectionPool) -> None:
        self.status = connection.response.status
        self.headers = connection.response.headers
        self._connection = connection
        self._pool = pool
        self._lent = True
        self._kept = b""
        self._coded: ContentDecoder | None = None
        self.compressed = False
        self._read: Callable[[], bytes] = connection.response.read

    def decode(self, coding: str, most: int) -> None:
        """Makes `read` return the decompressed body, at most so many bytes. A body of an unknown coding counts as
        empty; with status 200 that raises BackendError. `identity` and no name change nothing."""
        if coding in ("", "identity"):
            return
        try:
            self._coded = ContentDecoder(coding, most)
            self.compressed = True
        except KeyError:
            if self.status == 200:
                raise _unreadable(coding) from None
            self._read = partial(_passed_over, self._connection.response)
        else:
            self._read = partial(_decoded, self._connection.response, self._coded)

    async def read(self, most: int = 0) -> bytes:
        """Returns all bytes that have arrived, at least one; empty at the end. Raises BackendError.

        `most`: if many more bytes than these have arrived, only the first are returned; the next read returns the
        others."""
        connection = self._connection
        response = connection.response
        if self._coded is not None and self._coded.pending:
            # Pending pieces are returned without waiting: other tasks run between them.
            await asyncio.sleep(0)
        try:
            while not (data := self._kept or self._read()) and not response.ended:
                await connection.arrival()
        except HttpError as error:
            raise _backend_error(error) from error.__cause__
        self._kept = b""
        if connection.paused and not response.waiting:
            connection.resume()
        if most and len(data) > 2 * most:
            data, self._kept = data[:most], data[most:]
        return data

    async def read_error(self) -> bytes:
        """Returns the beginning of an error's body; a truncated body does not change that error."""
        body = b""
        try:
            while len(body) < ERROR_BODY_CAP and (piece := await self.read()):
                body += piece
        except BackendError:
            pass
        return body[:ERROR_BODY_CAP]

    @property
    def ended(self) -> bool:
        """Whether the whole body has arrived, and no bytes are kept for another read."""
        return self._connection.response.ended and not self._kept and (self._coded is None or self._coded.complete)

    @property
    def keeps(self) -> bool:
        """Whether the next read returns bytes that arrived with the last one."""
        return bool(self._kept)

    async def drain(self, seconds: float) -> None:
        """Waits a moment for the last bytes of the framing, so that the connection can be reused."""
        try:
            async with asyncio.timeout(seconds):
                while await self.read():
                    pass
        except (TimeoutError, BackendError):
            pass

    def close(self) -> None:
        """Releases the connection. A connection with an incomplete response is closed."""
        if self._lent:
            self._lent = False
            self._pool.release(self._connection, self.headers.get("keep-alive", ""))


class Transport:
    """The data-plane client. Use with `async with`; all backends share its pools.

    `max_response` is in bytes; `last_descriptor` is the highest descriptor that a connection may have."""

    def __init__(self, max_response: int, last_descriptor: int) -> None:
        self._max_response = max_response
        self._last_descriptor = last_descriptor
        self._pools: dict[Origin, ConnectionPool] = {}

    async def __aenter__(self) -> "Transport":
        self._loop = asyncio.get_running_loop()
        self._dialer = Connector(self._loop, self._last_descriptor)
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
        on_sent: Callable[[], None] = _nothing,
        on_status: Callable[[int], None] = _nothing,
        again: bool = True,
    ) -> BackendResponse:
        """Sends a request and waits for the head of its response; `connect` limits name look-up, TCP and TLS, in
        seconds. The caller limits the wait for the head. `more` are further header lines. Raises BackendError.

        `again`: the request may be tried once more while none of it has reached the backend. `on_try` is called before
        each try, `on_sent` when the request has been written to a connection, `on_status` with the status of every
        response, also of a refused one."""
        request = encode_request(lines, body, more)
        pool = self._pools.get(lines.address) or self._pools.setdefault(lines.address, ConnectionPool(self._loop))
        now = self._loop.time()
        due = now + connect
        while True:
            on_try()
            try:
                connection = pool.acquire(now) or await self._dialer.connect(lines.address, due, pool.connection)
                try:
                    connection.ask(request, self._max_response, lines.last)
                    on_sent()
                    response = connection.response
                    while not response.status:
                        await connection.arrival()
                    on_status(response.status)
                    answer = BackendResponse(connection, pool)
                    if 300 <= answer.status < 400:
                        raise _redirect()
                    if "content-encoding" in answer.headers:
                        answer.decode(answer.headers["content-encoding"].strip().lower(), self._max_response)
                    return answer
                except BaseException:  # also a cancellation: a connection with an unread response cannot be reused
                    connection.abort()
                    raise
            except (ConnectError, StaleConnection) as error:
                if not again or self._loop.time() + PAUSE_S >= due:
                    raise _backend_error(error) from error.__cause__
                again = False
            except HttpError as error:
                raise _backend_error(error) from error.__cause__
            await asyncio.sleep(PAUSE_S)
            now = self._loop.time()


def _unreadable(coding: str) -> BackendError:
    error = BackendProtocolError(
        "The backend sent a compressed response that cannot be decoded; the request accepts only identity.",
        code="upstream_invalid_response",
    )
    error.words = f"content-encoding: {coding}"
    return error


def _redirect() -> BackendError:
    return BackendError("The backend sent a redirect; redirects are not followed.", code="upstream_redirect")
