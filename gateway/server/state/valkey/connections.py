"""Runs scripts on the server, over a pool of connections that are closed as soon as anything about a reply is wrong.

valkey-py closes a connection when an exchange on it is cancelled, takes too long or breaks off. That alone has not
always kept replies in step with their calls. So each call has a token that its reply must begin with: a reply of
another call closes the connection and never reaches a caller.
"""

import asyncio
import secrets
import ssl
from collections.abc import Sequence
from itertools import count
from typing import Any, Final, TypeAlias

from valkey.asyncio.connection import Connection, ConnectionPool
from valkey.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    InvalidResponse,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    ValkeyError,
)
from valkey.exceptions import ConnectionError as ServerConnectionError
from valkey.exceptions import TimeoutError as ServerTimeoutError

from gateway.core.errors import SettingsError
from gateway.server.state.store import Failure, StoreUnavailable
from gateway.server.state.valkey.address import ServerAddress
from gateway.server.state.valkey.scripts import Script

# An exchange uses a connection for a trip to the server and back. The guard of a store lets no more callers come.
CONNECTIONS: Final = 16
# The last resort against a silent server: callers have deadlines of their own.
SILENT_S: Final = 5.0

Argument: TypeAlias = bytes | str | int
Reply: TypeAlias = bytes | int | None


class _TLSConnection(Connection):
    """A connection over TLS with the certificate checks of this interpreter's defaults: valkey-py's own class does not
    compare the host's name unless configured to."""

    def __init__(self, *, tls: ssl.SSLContext, **options: Any) -> None:
        super().__init__(**options)
        self._tls = tls

    def _connection_arguments(self) -> dict[str, Any]:
        return {**super()._connection_arguments(), "ssl": self._tls}


class Connections:
    """The connections of this process to one server; each is made when it is first needed. Raises SettingsError when
    the file of trusted certificates cannot be read."""

    def __init__(self, address: ServerAddress) -> None:
        self._pool = ConnectionPool(**_options(address))
        self._prefix = secrets.token_bytes(6)
        self._numbers = count()

    async def call(self, script: Script, keys: Sequence[bytes], *arguments: Argument) -> list[Reply]:
        """Returns the reply of the script without the token of the call: at least an outcome. Raises
        StoreUnavailable."""
        token = b"%b%d" % (self._prefix, next(self._numbers))
        tail = (len(keys), *keys, token, *arguments)
        try:
            async with asyncio.timeout(SILENT_S):
                try:
                    return await self._exchange(token, "EVALSHA", script.sha, *tail)
                except NoScriptError:
                    return await self._exchange(token, "EVAL", script.text, *tail)
        except _FAILURES as error:
            raise _unavailable(error) from None

    async def command(self, *arguments: Argument) -> Any:
        """Returns the reply to a command whose replies have no token. Raises StoreUnavailable.

        The connection is a new one, so that the reply is this command's."""
        connection = self._pool.make_connection()
        try:
            async with asyncio.timeout(SILENT_S):
                await connection.send_command(*arguments)
                return await connection.read_response()
        except _FAILURES as error:
            raise _unavailable(error) from None
        finally:
            await connection.disconnect(nowait=True)

    async def aclose(self) -> None:
        """Closes all connections; calls that are running fail."""
        await self._pool.disconnect()

    async def _exchange(self, token: bytes, *command: Argument) -> list[Reply]:
        connection = await self._pool.get_connection("EVALSHA")
        try:
            await connection.send_command(*command)
            return _checked(await connection.read_response(), token)
        except ResponseError:
            raise
        except BaseException:  # a cancelled exchange, too: its reply may still come
            await connection.disconnect(nowait=True)
            raise
        finally:
            await self._pool.release(connection)


def _options(address: ServerAddress) -> dict[str, Any]:
    options: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "db": address.database,
        "username": address.username,
        "password": address.password,
        # The library would wait with `asyncio.wait_for`, which in Python 3.11 can lose a cancellation.
        "socket_timeout": None,
        "socket_keepalive": True,
        "client_name": "dragoman",
        "lib_name": None,
        "lib_version": None,
    }
    if address.tls:
        options |= {"connection_class": _TLSConnection, "tls": _trust(address.ca_file)}
    return options


def _trust(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise SettingsError(f"state.store: ca_file {ca_file!r} holds no certificates that can be read") from None
    except OSError as error:
        raise SettingsError(f"state.store: ca_file {ca_file!r} cannot be read: {error.strerror}") from None


# Besides the errors of the library, those of its parser for replies that are none: numbers that are no numbers, lines
# and nestings without end.
_FAILURES: Final = (ValkeyError, OSError, ValueError, RecursionError, asyncio.IncompleteReadError)


def _checked(reply: Any, token: bytes) -> list[Reply]:
    if not isinstance(reply, list) or len(reply) < 2 or reply[0] != token:
        raise InvalidResponse("a reply of another call")
    if not all(value is None or isinstance(value, bytes | int) for value in reply):
        raise InvalidResponse("a nested reply")
    return reply[1:]


def _unavailable(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(_failure(error), str(error) or type(error).__name__)


def _failure(error: Exception) -> Failure:
    match error:
        case OutOfMemoryError() | ReadOnlyError():
            return "full"
        case ServerTimeoutError() | TimeoutError():
            return "slow"
        case ServerConnectionError() | OSError() | AuthenticationError() | NoPermissionError() | BusyLoadingError():
            return "down"
        case _:
            return "invalid"
