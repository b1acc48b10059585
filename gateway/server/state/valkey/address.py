"""Reads the URL of a Valkey or Redis server.

`valkey://` and `redis://` connect over plain TCP, `valkeys://` and `rediss://` over TLS: the server's certificate must
be valid for the host. `valkey://USER:PASSWORD@HOST:PORT/DATABASE?ca_file=PATH`; each part but the host may be left out.
"""

from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from gateway.core.errors import SettingsError

PORT: Final = 6379
PLAIN: Final = frozenset({"valkey", "redis"})
ENCRYPTED: Final = frozenset({"valkeys", "rediss"})


class ServerAddress(msgspec.Struct, frozen=True):
    """Where the server is, and how to connect to it. `ca_file` holds the certificates to trust; None: the system's."""

    host: str
    port: int = PORT
    database: int = 0
    username: str | None = None
    password: str | None = None
    tls: bool = False
    ca_file: str | None = None

    def __repr__(self) -> str:
        """Omits the password."""
        return f"ServerAddress({self})"

    def __str__(self) -> str:
        """The address as logs and errors show it."""
        scheme = "valkeys" if self.tls else "valkey"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}/{self.database}"


def read_address(url: str, password: str | None = None) -> ServerAddress:
    """Returns the parts of the URL, with this password if it is not None. Raises SettingsError, which does not show the
    URL: it may hold a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
        query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise _wrong("its host, port or query cannot be read") from None
    database = parts.path.strip("/")
    if parts.scheme not in PLAIN | ENCRYPTED:
        raise _wrong("its scheme is not one of valkey, valkeys, redis and rediss")
    if not parts.hostname:
        raise _wrong("it has no host")
    if database and not (database.isascii() and database.isdigit()):
        raise _wrong("its path is not the number of a database")
    if unknown := query.keys() - {"ca_file"}:
        raise _wrong(f"it has the unknown parameter {sorted(unknown)[0]!r}; there is only ca_file")
    return ServerAddress(
        parts.hostname,
        PORT if port is None else port,
        int(database[:9] or 0),
        _text(parts.username),
        password or _text(parts.password),
        parts.scheme in ENCRYPTED,
        query.get("ca_file"),
    )


def _text(part: str | None) -> str | None:
    return unquote(part) if part else None


def _wrong(why: str) -> SettingsError:
    return SettingsError(f"state.store is no URL of a Valkey or Redis server: {why}")
