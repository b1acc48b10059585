"""The errors of the HTTP exchange with a backend, as one tree.

HttpError
├── ConnectError        the TCP connection failed
├── ConnectTimeout      the connection did not open in time
├── TLSError            the TLS connection failed or is not trusted
├── RemoteDisconnected  the connection ended before the head of the response
│   └── StaleConnection ... and, on a reused connection, before the request was written in full
├── HttpProtocolError   the head of the response is malformed or too large
├── Truncated           the body ended, or its framing broke, before its end
└── TooLarge            the body is larger than allowed
"""


class HttpError(Exception):
    """Base of all. The cause is the error of the operating system or the parser."""


class ConnectError(HttpError):
    """Connection refused, no route, or an unknown host name."""


class ConnectTimeout(HttpError):
    """Name look-up, TCP and TLS together exceeded the connect timeout."""


class TLSError(HttpError):
    """Invalid certificate, wrong host name, or failed handshake."""


class RemoteDisconnected(HttpError):
    """Closed or reset before there was a head. The request may have run."""


class StaleConnection(RemoteDisconnected):
    """The backend had closed a kept connection, and cannot have read the whole request."""


class HttpProtocolError(HttpError):
    """Malformed bytes, too many headers, or ambiguous framing."""


class Truncated(HttpError):
    """Closed, reset or malformed within the body."""


class TooLarge(HttpError):
    """More bytes than the caller allows."""
