"""A client that asks one backend through the gateway's transport."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.fd_limits import MOST
from gateway.server.upstream.http.origin import Url, read_url
from gateway.server.upstream.http1.request_head import Lines
from gateway.server.upstream.http2.request_head import RequestFields
from gateway.server.upstream.transport import Transport, encode_head

BODY: Final = b"body of the request"
EncodeHead: TypeAlias = Callable[[str, Url, Mapping[str, str]], Lines | RequestFields]


class TransportClient:
    """Asks one backend, and counts the tries."""

    def __init__(self, transport: Transport, base_url: str, encode: EncodeHead) -> None:
        self.transport = transport
        self.base_url = base_url
        self._encode = encode
        self.tries = 0

    async def send(
        self,
        body: bytes = BODY,
        headers: Mapping[str, str] | None = None,
        connect: float = 5,
        again: bool = True,
        ping: float | None = None,
    ) -> BackendResponse:
        head = self._encode("POST", read_url(f"{self.base_url}/path"), headers or {})
        return await self.transport.send(head, body, connect, on_try=self._tried, again=again, ping=ping)

    async def ask(self, body: bytes = BODY, headers: Mapping[str, str] | None = None) -> bytes:
        """The body of the answer, read to its end."""
        given = await self.send(body, headers)
        try:
            return await everything(given)
        finally:
            given.close()

    def _tried(self) -> None:
        self.tries += 1


async def everything(given: BackendResponse) -> bytes:
    pieces = []
    while piece := await given.read():
        pieces.append(piece)
    return b"".join(pieces)


@asynccontextmanager
async def client_of(
    base_url: str, most: int = 2**30, encode: EncodeHead = encode_head
) -> AsyncIterator[TransportClient]:
    """A client whose requests have this head, which chooses HTTP/1.1 or HTTP/2."""
    async with Transport(most, MOST) as transport:
        yield TransportClient(transport, base_url, encode)
