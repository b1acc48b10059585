"""Parses a URL into the server to connect to and the target to request."""

from string import punctuation
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from gateway.settings import TlsSettings

PORTS: Final = {"http": 80, "https": 443}
_NO_SERVER: Final = "must name a host that can be looked up and a port up to 65535"


class Origin(msgspec.Struct, frozen=True):
    """A server, its protocol, and the files of TLS to it: requests to the same origin may share connections. `host` is
    a name or a bare IP address."""

    host: str
    port: int
    tls: bool
    files: TlsSettings | None = None

    @property
    def authority(self) -> str:
        """The value of the Host header (RFC 9110, section 7.2), with the port when it is not the scheme's default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"


class Url(msgspec.Struct, frozen=True):
    """`path` begins with a slash and may contain a query."""

    address: Origin
    path: str

    def __str__(self) -> str:
        return f"{self.address.scheme}://{self.address.authority}{self.path}"


def split_url(text: str) -> SplitResult:
    """Returns the parts of the URL. Raises ValueError, whose text never repeats a credential."""
    try:
        return urlsplit(text)
    except ValueError:
        raise ValueError(_NO_SERVER) from None


def read_url(text: str, files: TlsSettings | None = None) -> Url:
    """Parses the URL, to which TLS has these files. Raises ValueError, whose text never repeats a credential."""
    split = split_url(text)
    if split.scheme not in PORTS or not split.hostname:
        raise ValueError("must begin with http:// or https:// and name a host")
    if "@" in split.netloc:
        raise ValueError("must not contain a credential")
    try:
        port = split.port
        host = split.hostname if ":" in split.hostname else split.hostname.encode("idna").decode("ascii")
    except ValueError:
        raise ValueError(_NO_SERVER) from None
    path = quote(f"{split.path or '/'}?{split.query}" if split.query else split.path or "/", safe=punctuation)
    tls = split.scheme == "https"
    return Url(Origin(host, PORTS[split.scheme] if port is None else port, tls, files if tls else None), path)
