"""Sends the body of a request to a backend piece by piece, while its response is awaited and read."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from gateway.server.upstream.http1.backend_connection import BackendConnection
from gateway.server.upstream.http1.pool import ConnectionPool
from gateway.server.upstream.http1.request_head import Lines, encode_upload_head

_LAST_CHUNK: Final = b"0\r\n\r\n"


class Upload:
    """A body that is sent once. `pieces` are its bytes, and `length` is how many there are; None: it is sent as chunks.
    What the iterator raises ends the connection before the body is complete, and is raised by `check`."""

    def __init__(self, pieces: AsyncIterator[bytes], length: int | None) -> None:
        self._pieces = pieces
        self._length = length
        self._task: asyncio.Task[None] | None = None

    def lender(self, pool: ConnectionPool) -> "_UploadPool":
        """Returns what lends connections of this pool for the body."""
        return _UploadPool(pool, self)

    def begin(self, head: Lines, most: int, connection: BackendConnection) -> None:
        """Sends the head, and begins with the body; its response may have a body of `most` bytes."""
        connection.send_request(encode_upload_head(head, self._length), most, last=True)
        self._task = asyncio.get_running_loop().create_task(self._run(connection))

    def check(self) -> None:
        """Raises what has ended the body before it was complete, if anything has."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    def stop(self) -> None:
        """Sends no more of the body."""
        if self._task is None:
            return
        if not self._task.done():
            self._task.cancel()
        elif not self._task.cancelled():
            self._task.exception()  # else asyncio reports it as one that nobody has seen

    async def _run(self, connection: BackendConnection) -> None:
        complete = False
        try:
            async for piece in self._pieces:
                if piece:
                    await connection.write(piece if self._length is not None else b"%x\r\n%b\r\n" % (len(piece), piece))
            if self._length is None:
                await connection.write(_LAST_CHUNK)
            complete = True
        finally:
            if not complete:
                connection.abort()


class _UploadPool:
    """Lends new connections alone, and takes none back."""

    def __init__(self, pool: ConnectionPool, upload: Upload) -> None:
        self._pool = pool
        self._upload = upload

    def acquire(self, now: float) -> BackendConnection | None:
        return None

    async def open(self, due: float) -> BackendConnection:
        return await self._pool.open(due)

    def release(self, connection: BackendConnection, granted: str) -> None:
        self._upload.stop()
        connection.abort()
