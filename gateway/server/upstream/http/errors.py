"""Defines the errors of the HTTP exchange with a backend, as one tree.

HttpError
├── ConnectError        the TCP connection failed
├── ConnectTimeout      the connection did not open in time
├── TLSError            the TLS connection failed or is not trusted
├── RemoteDisconnected  the connection ended before the head of the response
│   └── StaleConnection ... and, on a reused connection, before the request was written in full
├── HttpProtocolError   the head of the response is malformed or too large
│   └── NoHttp2         ... because the backend does not speak HTTP/2
├── Unprocessed         HTTP/2: the backend says that it has not begun with the request
├── Throttled           HTTP/2: the backend asks for fewer requests
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


class NoHttp2(HttpProtocolError):
    """TLS negotiated no HTTP/2, or the first bytes are those of HTTP/1.1."""


class Unprocessed(HttpError):
    """REFUSED_STREAM, a GOAWAY below the stream, or no stream allowed: the request has not run (RFC 9113, 8.7)."""


class Throttled(HttpError):
    """ENHANCE_YOUR_CALM (RFC 9113, section 7)."""


class Truncated(HttpError):
    """Closed, reset or malformed within the body."""


class TooLarge(HttpError):
    """More bytes than the caller allows."""
