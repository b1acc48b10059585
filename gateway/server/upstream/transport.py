"""Sends requests over HTTP/1.1 or HTTP/2, with one pool per address; every fault is a BackendError.

Redirects are not followed (they would leak the key), environment proxies and cookies are not used, compression is not
requested, and an unrequested compression is decoded within bounds. A request that may have reached a backend is not
sent twice: it may have run.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from gateway.core.backend_status import status_error
from gateway.core.errors import BackendError
from gateway.server.upstream.backend_faults import backend_error
from gateway.server.upstream.backend_response import BackendResponse, ResponseConnection
from gateway.server.upstream.http.connect import Connector
from gateway.server.upstream.http.errors import ConnectError, HttpError, StaleConnection, Unprocessed
from gateway.server.upstream.http.headers import Headers, Signer
from gateway.server.upstream.http.origin import Origin, Url
from gateway.server.upstream.http1.pool import ConnectionPool
from gateway.server.upstream.http1.request_head import Lines, encode_lines, encode_request
from gateway.server.upstream.http2.request_head import RequestFields, encode_fields, encode_http2_request
from gateway.settings.source import Stamp

if TYPE_CHECKING:
    from gateway.server.upstream.http2.pool import Http2Pool
    from gateway.server.upstream.upload import Upload

Loop: TypeAlias = asyncio.AbstractEventLoop
# A server, and the stamp of the files of TLS to it.
Place: TypeAlias = tuple[Origin, Stamp]

# A backend that is restarting listens again soon.
PAUSE_S: Final = 0.1


class LentConnection(ResponseConnection, Protocol):
    """A connection, or a stream on a shared one, that is lent to one request."""

    def abort(self) -> None:
        """Ends its use at once; what has not arrived is given up."""
        ...


C = TypeVar("C", bound=LentConnection)
P = TypeVar("P", bound="ConnectionPool | Http2Pool")


class Pool(Protocol[C]):
    """Lends connections to one address, or streams on them: an open one at once, or a new one by the loop's time
    `due`. `granted` is the response's header Keep-Alive."""

    def acquire(self, now: float) -> C | None: ...

    async def open(self, due: float) -> C: ...

    def release(self, connection: C, granted: str) -> None: ...


@lru_cache
def gateway_version() -> str:
    """Returns the installed version."""
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return "0"


def encode_head(method: str, url: Url, headers: Mapping[str, str], signer: Signer | None = None) -> Lines:
    """Encodes the head of a request, with the gateway's default headers unless the given ones override them, for
    requests that `signer` signs. Raises ValueError for headers that cannot be sent."""
    own = {"user-agent": _user_agent(), "accept-encoding": "identity"}
    return encode_lines(method, url, [*own.items(), *headers.items()], signer)


def encode_http2_head(method: str, url: Url, headers: Mapping[str, str], signer: Signer | None = None) -> RequestFields:
    """Encodes the head of a request over HTTP/2; otherwise like `encode_head`."""
    return encode_fields(method, url, [("user-agent", _user_agent()), *headers.items()], signer)


def _user_agent() -> str:
    return f"dragoman/{gateway_version()}"


def _nothing(*_: int) -> None:
    pass


class Transport:
    """The data-plane client. Use with `async with`; all backends share its pools.

    `max_response` is in bytes; `last_descriptor` is the highest descriptor that a connection may have."""

    def __init__(self, max_response: int, last_descriptor: int) -> None:
        self._max_response = max_response
        self._last_descriptor = last_descriptor
        self._pools: dict[Place, ConnectionPool] = {}
        self._http2_pools: dict[Place, Http2Pool] = {}
        # Those whose files of TLS were replaced: their requests go on, and no other one begins there.
        self._replaced: list[ConnectionPool | Http2Pool] = []

    async def __aenter__(self) -> "Transport":
        self._loop = asyncio.get_running_loop()
        self._connector = Connector(self._loop, self._last_descriptor)
        return self

    async def __aexit__(self, *_: object) -> None:
        pools = (*self._pools.values(), *self._http2_pools.values(), *self._replaced)
        await asyncio.gather(*(pool.close() for pool in pools))

    def send(
        self,
        head: Lines | RequestFields,
        body: bytes,
        connect: float,
        *,
        more: Headers = (),
        ping: float | None = None,
        on_try: Callable[[], None] = _nothing,
        on_sent: Callable[[], None] = _nothing,
        on_status: Callable[[int], None] = _nothing,
        again: bool = True,
    ) -> Coroutine[None, None, BackendResponse]:
        """Sends a request, over the version of HTTP that its head is for, and waits for the head of its response;
        `connect` limits name look-up, TCP, TLS and the first SETTINGS of HTTP/2, in seconds. The caller limits the wait
        for the head. `more` are headers of this request alone. Over HTTP/2, a backend from which nothing has arrived
        for `ping` seconds is asked for a sign of life while the request runs (None: never). Raises BackendError.

        `again`: the request may be tried once more while none of it has reached the backend; a head that signs does so
        for each try. `on_try` is called before each try, `on_sent` when the request has been written to a connection,
        `on_status` with the status of every response, also of a refused one."""
        address, most = head.address, self._max_response
        if isinstance(head, RequestFields):
            # `h2` takes 5 MB, for which a gateway without such a backend has no use.
            from gateway.server.upstream.http2.pool import Http2Pool

            fields = encode_http2_request(head, body, more) if head.sign is None else None
            shared = self._pool(self._http2_pools, Http2Pool, address)
            return self._send(
                shared,
                lambda one: one.send_request(fields or encode_http2_request(head, body, more), most, ping),
                connect,
                on_try,
                on_sent,
                on_status,
                again,
            )
        request = encode_request(head, body, more) if head.sign is None else None
        last = head.last
        pool = self._pool(self._pools, ConnectionPool, address)
        return self._send(
            pool,
            lambda one: one.send_request(request or encode_request(head, body, more), most, last),
            connect,
            on_try,
            on_sent,
            on_status,
            again,
        )

    async def send_upload(
        self,
        head: Lines,
        upload: "Upload",
        connect: float,
        *,
        on_try: Callable[[], None] = _nothing,
        on_sent: Callable[[], None] = _nothing,
        on_status: Callable[[int], None] = _nothing,
    ) -> BackendResponse:
        """Sends a request whose body follows piece by piece, over HTTP/1.1, on a connection of its own: what was read
        of the body cannot be sent twice. The response may come before the end of the body, whose rest is then not sent
        once the response is closed. Otherwise like `send`; raises also what ends the body."""
        pool = upload.lender(self._pool(self._pools, ConnectionPool, head.address))
        begin = partial(upload.begin, head, self._max_response)
        try:
            return await self._send(pool, begin, connect, on_try, on_sent, on_status, True)
        except BaseException as error:  # also a cancellation: no more of the body is sent
            upload.stop()
            if isinstance(error, BackendError):
                upload.check()
            raise

    def _pool(self, pools: dict[Place, P], kind: Callable[[Loop, Connector, Origin], P], address: Origin) -> P:
        place = (address, None if address.files is None else self._connector.stamp(address.files))
        pool = pools.get(place)
        if pool is None:
            self._replace(pools, address)
            pool = pools[place] = kind(self._loop, self._connector, address)
        return pool

    def _replace(self, pools: dict[Place, P], address: Origin) -> None:
        self._replaced = [pool for pool in self._replaced if pool.size]
        for place in [place for place in pools if place[0] == address]:
            replaced = pools.pop(place)
            replaced.retire()
            self._replaced.append(replaced)

    async def _send(
        self,
        pool: Pool[C],
        ask: Callable[[C], None],
        connect: float,
        on_try: Callable[[], None],
        on_sent: Callable[[], None],
        on_status: Callable[[int], None],
        again: bool,
    ) -> BackendResponse:
        now = self._loop.time()
        due = now + connect
        while True:
            on_try()
            try:
                connection = pool.acquire(now) or await pool.open(due)
                try:
                    ask(connection)
                    on_sent()
                    response = connection.response
                    while not response.status:
                        await connection.arrival()
                    on_status(response.status)
                    granted = response.headers.get("keep-alive", "")
                    answer = BackendResponse(connection, partial(pool.release, connection, granted))
                    if 300 <= answer.status < 400:
                        raise status_error(answer.status, {})
                    if "content-encoding" in answer.headers:
                        answer.decode(answer.headers["content-encoding"].strip().lower(), self._max_response)
                    return answer
                except BaseException:  # also a cancellation: a connection with an unread response cannot be reused
                    connection.abort()
                    raise
            except (ConnectError, StaleConnection) as error:
                if not again or self._loop.time() + PAUSE_S >= due:
                    raise backend_error(error) from error.__cause__
                again = False
            except Unprocessed as error:
                if not again:
                    raise backend_error(error) from error.__cause__
                again = False
                due = self._loop.time() + PAUSE_S + connect
            except HttpError as error:
                raise backend_error(error) from error.__cause__
            await asyncio.sleep(PAUSE_S)
            now = self._loop.time()
