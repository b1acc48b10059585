"""Opens a connection to an address: name look-up, TCP, TLS."""

import asyncio
import errno
import itertools
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, TypeAlias, TypeVar

from gateway.core.errors import SettingsError
from gateway.server.upstream.http.errors import ConnectError, ConnectTimeout, RemoteDisconnected, TLSError
from gateway.server.upstream.http.origin import Origin
from gateway.server.upstream.http.tls import BACKEND_CONTEXTS, tls_context
from gateway.settings import TlsSettings
from gateway.settings.source import Stamp

# The address family and the argument of `connect`.
Place: TypeAlias = "tuple[int, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]"

# RFC 8305, section 5: the delay after which the next address is tried in parallel.
HEAD_START_S: Final = 0.25
NAMES_S: Final = 30


class SocketProtocol(asyncio.Protocol):
    """The protocol of a socket that `Connector` opens. `alpn` is the name that TLS negotiates for it (RFC 7301)."""

    alpn: ClassVar[str]

    def disown(self) -> None:
        """Marks the connection as lost, since its opening was cancelled: uvloop then makes no further callback, even
        for a socket that it has reported as open."""
        self.connection_lost(None)


P = TypeVar("P", bound=SocketProtocol)


class Connector:
    """Opens connections. Resolved names are cached for half a minute.

    A connection whose descriptor would exceed `last_descriptor` fails as if no descriptor were left."""

    def __init__(self, loop: asyncio.AbstractEventLoop, last_descriptor: int) -> None:
        self._loop = loop
        self._last_descriptor = last_descriptor
        self._known: dict[Origin, tuple[float, Sequence[Place]]] = {}

    def stamp(self, files: TlsSettings) -> Stamp:
        """Returns a value that changes when these files of TLS are replaced."""
        return BACKEND_CONTEXTS.stamp(files, self._loop.time())

    async def connect(self, address: Origin, due: float | None, make: Callable[[], P]) -> P:
        """Returns a new connection; the loop's time `due` is the limit for opening it, None for no limit. Raises
        HttpError."""
        try:
            async with asyncio.timeout_at(due):
                sock = await self._connect(address)
                return await self._start(sock, address, make)
        except TimeoutError as error:
            raise ConnectTimeout from error
        except OSError as error:
            # The name may have a new address.
            self._known.pop(address, None)
            raise ConnectError from error

    async def _start(self, sock: socket.socket, address: Origin, make: Callable[[], P]) -> P:
        connection = make()
        try:
            context = self._context(address, connection.alpn) if address.tls else None
        except SettingsError as error:
            sock.close()
            raise TLSError from error.__cause__
        name = address.host if address.tls else None
        try:
            await self._loop.create_connection(lambda: connection, sock=sock, ssl=context, server_hostname=name)
        except asyncio.CancelledError:
            connection.disown()
            raise
        except ssl.SSLError as error:
            raise TLSError from error
        except OSError as error:
            raise RemoteDisconnected from error
        return connection

    def _context(self, address: Origin, alpn: str) -> ssl.SSLContext:
        return tls_context(alpn) if address.files is None else BACKEND_CONTEXTS.context(address.files, alpn)

    async def _connect(self, address: Origin) -> socket.socket:
        places = await self._look_up(address)
        if len(places) == 1:
            return await _connect(self._loop, places[0], self._last_descriptor)
        return await race(self._loop, places, self._last_descriptor)

    async def _look_up(self, address: Origin) -> Sequence[Place]:
        until, places = self._known.get(address, (0.0, ()))
        if self._loop.time() >= until:
            found = await self._loop.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
            places = mixed([(family, place) for family, _, _, _, place in found])
            self._known[address] = self._loop.time() + NAMES_S, places
        return places


def mixed(places: Sequence[Place]) -> list[Place]:
    """Alternates the address families, so that an unreachable one costs one head start (RFC 8305, section 4)."""
    first = [place for place in places if place[0] == places[0][0]]
    rest = [place for place in places if place[0] != places[0][0]]
    pairs = itertools.zip_longest(first, rest)
    return [place for pair in pairs for place in pair if place is not None]


async def _connect(loop: asyncio.AbstractEventLoop, place: Place, last_descriptor: int) -> socket.socket:
    family, where = place
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sock.fileno() > last_descriptor:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, where)
    except BaseException:  # also a cancellation: no other code knows of the socket yet
        sock.close()
        raise
    return sock


async def race(loop: asyncio.AbstractEventLoop, places: Sequence[Place], last_descriptor: int) -> socket.socket:
    """Returns the first connected socket. The next address is tried when one fails, or does not connect within its head
    start. Raises the last OSError when all fail."""
    left = list(places)
    tasks: set[asyncio.Task[socket.socket]] = set()
    running: set[asyncio.Task[socket.socket]] = set()
    try:
        while True:
            if left:
                task = loop.create_task(_connect(loop, left.pop(0), last_descriptor))
                tasks.add(task)
                running.add(task)
            timeout = HEAD_START_S if left else None
            done, running = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            winner = next((task for task in done if task.exception() is None), None)
            if winner is not None:
                tasks.discard(winner)
                return winner.result()
            if not (running or left):
                return done.pop().result()
    finally:
        for task in tasks:
            task.cancel()
            task.add_done_callback(_discard)


def _discard(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()
