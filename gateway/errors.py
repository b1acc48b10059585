"""Everything that can go wrong, as one tree whose leaves know the HTTP status and the OpenAI error object.

GatewayError
├── InvalidRequest            the caller's fault (400 and other 4xx)
│   └── Unsupported           a field that the chosen backend cannot honour (400)
├── BackendError              the backend's fault
│   ├── BackendRejected       the backend answered with an error, in a status or inside the stream
│   ├── BackendUnavailable    it could not be reached
│   ├── BackendTimeout        it took too long
│   ├── BackendProtocolError  it answered with bytes that break its own wire format
│   ├── BackendTruncated      its bytes ended before the answer did
│   └── InvalidToolCall       it sent an envelope from which no real call can be made
├── ServerShutdown            we are being stopped
└── SettingsError             settings.json is wrong (start-up only)
Any other exception is a bug: 500 `internal_error`.
"""

from collections.abc import Iterable, Mapping, Sequence

from gateway.events import Event
from gateway.notices import Notice
from gateway.types import Json, JsonObject


class GatewayError(Exception):
    """Base of all. `status`, `type`, `code` and `param` are those of the OpenAI error object.

    `headers` are added to the answer (`retry-after`, `x-should-retry`). `notices` are what the log shall also say.
    """

    status = 500
    type = "server_error"
    code: str | None = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: JsonObject | None = None,
        notices: Sequence[Notice] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status or self.status
        self.type = type or self.type
        self.code = code or self.code
        self.param = param
        self.headers: Mapping[str, str] = headers or {}
        self.extra: JsonObject = extra or {}
        self.notices = tuple(notices)

    def body(self) -> dict[str, Json]:
        """The OpenAI error object: `{"error": {"message", "type", "param", "code", ...}}`."""
        error: dict[str, Json] = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        return {"error": {**error, **self.extra}}


class InvalidRequest(GatewayError):
    """The request cannot be served as it is; the message says what and where."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_value"


class Unsupported(InvalidRequest):
    """The backend cannot honour a field, and ignoring it would lie. `param` names the field."""

    code = "unsupported_parameter"


class BackendError(GatewayError):
    """The backend failed. Raised before the first byte it is an HTTP status, later one in-band error frame.

    `events` are what the same bytes brought before the fault; a client who reads along shall see them.
    """

    status = 502
    type = "upstream_error"
    code = "upstream_error"
    events: tuple[Event, ...] = ()

    def keep(self, events: Iterable[Event]) -> None:
        """These came before the fault, and before what is kept already. Notices among them go to `notices`."""
        found = tuple(events)
        self.events = (*(event for event in found if not isinstance(event, Notice)), *self.events)
        self.notices = (*(event for event in found if isinstance(event, Notice)), *self.notices)

    def take(self) -> list[Event]:
        """What is kept; it is kept no longer."""
        events, self.events = list(self.events), ()
        return events


class BackendRejected(BackendError):
    """The backend said no: its error, mapped by the adapter."""


class BackendUnavailable(BackendError):
    """No connection, or it was lost before any answer."""

    code = "upstream_connection_error"


class BackendTimeout(BackendError):
    """A deadline passed: connect, first byte, idle or total."""

    status = 504
    code = "upstream_timeout"


class BackendProtocolError(BackendError):
    """A malformed event or body. The stream fails: skipping an event would lose text in silence."""

    code = "upstream_invalid_event"


class BackendTruncated(BackendError):
    """The bytes ended before a finish event: never a success."""

    code = "upstream_stream_truncated"


class InvalidToolCall(BackendError):
    """An envelope (`call_mcp_tool`) without a usable name or with arguments that are no object."""

    code = "upstream_invalid_tool_call"


class ServerShutdown(GatewayError):
    """The gateway is being stopped and the drain limit has passed."""

    status = 503
    code = "server_shutdown"


class SettingsError(GatewayError):
    """settings.json cannot be used; the message names the setting and, for an unknown one, the nearest known name."""

    code = "invalid_settings"
