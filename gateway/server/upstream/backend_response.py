"""Reads the response of a backend piece by piece, over any version of HTTP; every fault is a BackendError."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from gateway.core.errors import BackendError, BackendProtocolError
from gateway.server.upstream.backend_faults import backend_error
from gateway.server.upstream.http.errors import HttpError
from gateway.server.upstream.http1.content_coding import ContentDecoder

ERROR_BODY_CAP: Final = 64 * 1024
# The framing of a response may arrive after its logical end; a short wait keeps the connection reusable.
DRAIN_S: Final = 0.05


class IncomingResponse(Protocol):
    """A response as it arrives. `status` is 0 until the head is complete; `waiting` is the number of body bytes that
    are not read yet; `ended`: the response is complete."""

    status: int
    headers: Mapping[str, str]
    ended: bool

    @property
    def trailers(self) -> Mapping[str, str]: ...

    @property
    def waiting(self) -> int: ...

    def read(self) -> bytes:
        """Returns the body bytes received since the last call."""
        ...


class ResponseConnection(Protocol):
    """The connection of a response, or its stream on a shared one. `paused`: the backend waits for `resume` before it
    sends more, as soon as it has sent what it may."""

    @property
    def response(self) -> IncomingResponse: ...

    @property
    def paused(self) -> bool: ...

    def resume(self) -> None: ...

    def arrival(self) -> asyncio.Future[None]:
        """Returns a future that completes as soon as something arrives. Raises HttpError."""
        ...


def _decoded(response: IncomingResponse, coded: ContentDecoder) -> bytes:
    # Pending compressed bytes come first: further input would only wait in the decoder.
    data = coded.feed(b"" if coded.pending else response.read())
    if not data and response.ended:
        coded.close()
    return data


def _passed_over(response: IncomingResponse) -> bytes:
    response.read()
    return b""


class BackendResponse:
    """The head of a backend's response, and its body piece by piece. Header names are lower case. `compressed`: the
    body was sent compressed, and `read` returns what it was."""

    __slots__ = (
        *("_arrival", "_coded", "_connection", "_kept", "_lent", "_read", "_release"),
        *("compressed", "headers", "status"),
    )

    def __init__(self, connection: ResponseConnection, release: Callable[[], None]) -> None:
        """`release` ends the use of the connection, or of its stream."""
        self.status = connection.response.status
        self.headers = connection.response.headers
        self._connection = connection
        self._release = release
        self._lent = True
        self._kept = b""
        # What the last read has waited for.
        self._arrival: asyncio.Future[None] | None = None
        self._coded: ContentDecoder | None = None
        self.compressed = False
        self._read: Callable[[], bytes] = connection.response.read

    def decode(self, coding: str, most: int) -> None:
        """Makes `read` return the decompressed body, at most so many bytes. A body of an unknown coding counts as
        empty; in an answer of success that raises BackendError. `identity` and no name change nothing."""
        if coding in ("", "identity"):
            return
        try:
            self._coded = ContentDecoder(coding, most)
            self.compressed = True
        except KeyError:
            if 200 <= self.status < 300:
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
                self._arrival = connection.arrival()
                await self._arrival
        except HttpError as error:
            raise backend_error(error) from error.__cause__
        self._kept = b""
        if connection.paused and not response.waiting:
            connection.resume()
        if most and len(data) > 2 * most:
            data, self._kept = data[:most], data[most:]
        return data

    def check(self, check: Callable[[], None]) -> None:
        """Has this called before bytes are read, by every read from now on and by one that is waiting. What it raises
        ends that read."""
        read = self._read

        def checked() -> bytes:
            check()
            return read()

        self._read = checked
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

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
    def trailers(self) -> Mapping[str, str]:
        """The trailers behind the body, which HTTP/2 may have. Names are lower case."""
        return self._connection.response.trailers

    @property
    def keeps(self) -> bool:
        """Whether the next read returns bytes that arrived with the last one."""
        return bool(self._kept)

    async def drain(self) -> None:
        """Waits a moment for the last bytes of the framing, so that the connection can be reused."""
        try:
            async with asyncio.timeout(DRAIN_S):
                while await self.read():
                    pass
        except (TimeoutError, BackendError):
            pass

    def close(self) -> None:
        """Releases the connection. One with an incomplete response is closed; over HTTP/2, its stream is cancelled."""
        if self._lent:
            self._lent = False
            self._release()


def _unreadable(coding: str) -> BackendError:
    error = BackendProtocolError(
        "The backend sent a compressed response that cannot be decoded; the request accepts only identity.",
        code="upstream_invalid_response",
    )
    error.words = f"content-encoding: {coding}"
    return error
