"""Sends raw bytes to a gateway and parses the responses on that connection strictly."""

import asyncio
import contextlib

import msgspec

from gateway.testing.gateway import RunningGateway


class Answer(msgspec.Struct, frozen=True):
    """One answer. Header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Hostile(msgspec.Struct, frozen=True):
    """One connection's bytes, and the statuses and the error code of what must come back."""

    name: str
    sent: bytes
    statuses: tuple[int, ...]
    code: str | None = None


class HostileSocket(msgspec.Struct, frozen=True):
    """What one client sends over a WebSocket, the code of each error that must come back, in their order, and that of
    the close. 1000: the connection stays, so that the client closes it."""

    name: str
    sent: bytes
    codes: tuple[str, ...]
    closed: int = 1000
    deflate: bool = False


async def said(gateway: RunningGateway, sent: bytes, seconds: float = 30) -> bytes:
    """Everything that comes back until the gateway hangs up."""
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    received = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(seconds):
            writer.write(sent)
            while piece := await reader.read(65536):
                received += piece
    writer.close()
    return received


def answers(received: bytes) -> list[Answer]:
    """The answers in these bytes. Raises ValueError for anything that is not a whole answer."""
    found: list[Answer] = []
    while received:
        head, mark, received = received.partition(b"\r\n\r\n")
        if not mark or not head.startswith(b"HTTP/1.1 "):
            raise ValueError(f"no head of an answer: {head[:80]!r}")
        status, *lines = head.split(b"\r\n")
        pairs = [line.decode("latin-1").partition(":") for line in lines]
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body, received = _body(headers, received)
        found.append(Answer(int(status[9:12]), headers, body))
    return found


def _body(headers: dict[str, str], rest: bytes) -> tuple[bytes, bytes]:
    if headers.get("transfer-encoding") == "chunked":
        return _chunks(rest)
    size = int(headers.get("content-length", "0"))
    if len(rest) < size:
        raise ValueError("the answer is shorter than it says")
    return rest[:size], rest[size:]


def _chunks(rest: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        line, mark, rest = rest.partition(b"\r\n")
        size = int(line, 16)
        if not mark or rest[size : size + 2] != b"\r\n":
            raise ValueError("the answer's chunks are broken")
        body += rest[:size]
        rest = rest[size + 2 :]
        if not size:
            return body, rest
