"""Everything that can go wrong between us and a backend's HTTP server, as one tree.

HttpError
├── Unreachable    no TCP connection came about
├── DialedTooLong  none came about in time
├── Untrusted      no TLS connection that can be trusted came about
├── HungUp         the connection ended before the answer's head
│   └── Unsent     ... and, being an old one, before the request was written in full
├── NotHttp        what came instead of a head is none, or is larger than any head should be
├── Truncated      the body ended, or its framing broke, before its end
└── TooLarge       the body is larger than allowed
"""


class HttpError(Exception):
    """Base of all. The operating system's or the parser's own error is the cause."""


class Unreachable(HttpError):
    """Refused, no route, or a name that nobody knows."""


class DialedTooLong(HttpError):
    """Name look-up, TCP and TLS together took longer than they may."""


class Untrusted(HttpError):
    """The certificate, its name, or the handshake."""


class HungUp(HttpError):
    """Closed or reset before there was a head. The request may have run."""


class Unsent(HungUp):
    """The backend had hung up on a kept connection, and cannot have read the whole request."""


class NotHttp(HttpError):
    """Garbage, a flood of headers, or framing that says two things."""


class Truncated(HttpError):
    """Closed, reset or garbled within the body."""


class TooLarge(HttpError):
    """More bytes than the caller wants to see."""
