"""Maps each fault of the HTTP exchange with a backend to the error that the client receives."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.core.backend_status import NO_RETRY, status_error
from gateway.core.errors import INCOMPLETE, BackendError, BackendProtocolError, BackendTruncated, BackendUnavailable
from gateway.server.upstream.http.errors import (
    ConnectError,
    ConnectTimeout,
    HttpError,
    HttpProtocolError,
    NoHttp2,
    RemoteDisconnected,
    StaleConnection,
    Throttled,
    TLSError,
    TooLarge,
    Truncated,
    Unprocessed,
)


def truncated() -> BackendTruncated:
    """Returns the error for a body that ended, or whose framing broke, before the response was complete."""
    return BackendTruncated(INCOMPLETE)


def _hung_up() -> BackendError:
    return BackendUnavailable("The backend closed the connection before it responded.")


_FAULTS: Final[Mapping[type[HttpError], Callable[[], BackendError]]] = {
    ConnectError: lambda: BackendUnavailable("The backend could not be reached."),
    ConnectTimeout: lambda: BackendUnavailable("The backend did not accept a connection in time (timeouts.connect)."),
    TLSError: lambda: BackendUnavailable(
        "No trusted TLS connection to the backend could be made.", code="upstream_tls_error", headers=NO_RETRY
    ),
    RemoteDisconnected: _hung_up,
    StaleConnection: _hung_up,
    HttpProtocolError: lambda: BackendProtocolError(
        "The backend's response is not HTTP.", code="upstream_protocol_error"
    ),
    NoHttp2: lambda: BackendProtocolError(
        "The backend does not speak HTTP/2.", code="upstream_protocol_error", headers=NO_RETRY
    ),
    Unprocessed: lambda: status_error(503, {}),
    Throttled: lambda: status_error(429, {}),
    Truncated: truncated,
    TooLarge: lambda: BackendError(
        "The backend's response is larger than allowed.", code="upstream_response_too_large"
    ),
}


def backend_error(error: HttpError) -> BackendError:
    """Returns the error for a fault, for the caller to raise with its cause."""
    return _FAULTS[type(error)]()
