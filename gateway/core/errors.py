"""Defines every error as one tree whose leaves carry a kind, an HTTP status and a stable code.

An error knows no client's format: the dialect of the client turns it into an error object.

GatewayError
├── InvalidRequest            the client's fault (400 and other 4xx)
│   ├── Unsupported           a field that the chosen backend does not support (400)
│   └── RequirementNotMet     a loss that the client, its key or its model does not permit (400)
├── BackendError              the backend's fault
│   ├── BackendRejected       the backend returned an error, as a status or inside the stream
│   ├── BackendUnavailable    the connection failed
│   ├── BackendTimeout        a deadline passed
│   ├── BackendProtocolError  the response breaks the backend's own wire format
│   ├── BackendTruncated      the response ended before it was complete
│   └── InvalidToolCall       the backend sent a wrapped call from which no real call can be made
├── ServerShutdown            the gateway is being stopped
└── SettingsError             settings.json is wrong (start-up only)
    └── OptionError           a key of one adapter is (start-up only)
Any other exception is a bug: 500 `internal_error`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from gateway.core.context_length import TooLong
from gateway.core.conversation import JsonObject
from gateway.core.events import Event
from gateway.core.notices import Notice

# Whose fault an error is: the client's, that of a limit, the gateway's or the backend's. The status says what happened
# (401 a wrong key, 404 an unknown model, 503 overload, 504 a timeout): a dialect derives its own names from both.
Kind: TypeAlias = Literal["invalid_request", "rate_limit", "server", "upstream"]


# The rule of an error about an image or a file that the backend does not take or cannot read.
IMAGE_REFUSED: Final = "IMAGE_REFUSED"


class OwnWords(NamedTuple):
    """The gateway's own sentence and code, which replace those that quote a backend."""

    message: str
    code: str


class ErrorText(NamedTuple):
    """The texts of an error that a client may read. `param` is the path of the faulty field in its request."""

    message: str
    code: str | None
    param: str | None


_TIMEOUT: Final = "upstream_timeout"


class GatewayError(Exception):
    """Base of all errors. `code` is stable and meant for programs, `param` the path of the faulty field.

    `headers` are added to the response (`retry-after`, `x-should-retry`). `notices` are logged with the error. `extra`
    holds further facts for the error object, such as `violations`. `own_words` is set when the message, code or param
    are the backend's: these may only be sent with their status.
    """

    status = 500
    kind: Kind = "server"
    code: str | None = "internal_error"
    own_words: OwnWords | None = None

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        kind: Kind | None = None,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: JsonObject | None = None,
        notices: Sequence[Notice] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status or self.status
        self.kind = kind or self.kind
        self.code = code or self.code
        self.param = param
        self.headers: Mapping[str, str] = headers or {}
        self.extra: JsonObject = extra or {}
        self.notices = tuple(notices)

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed if it is sent again. Of a timeout, the header only keeps SDKs from
        repeating at once what is expensive."""
        repeatable = self.headers.get("x-should-retry") != "false" or self.code == _TIMEOUT
        return repeatable and (self.status == 429 or self.status >= 500)

    def text(self, *, in_stream: bool = False) -> ErrorText:
        """Returns the text, code and param that a client may read; `in_stream`: inside a response whose status is
        200."""
        if in_stream and self.own_words is not None:
            return ErrorText(*self.own_words, None)
        return ErrorText(self.message, self.code, self.param)


class InvalidRequest(GatewayError):
    """The gateway cannot serve the request as it is; the message says what is wrong and where."""

    status = 400
    kind = "invalid_request"
    code = "invalid_value"


def nothing_to_send(param: str) -> InvalidRequest:
    """Returns the error for messages of which none can be sent: the provider refuses a request without one. `param`
    names the messages."""
    message = f"{param} must have a message of the user or the assistant with content besides system and blank text."
    return InvalidRequest(message, param=param)


class Unsupported(InvalidRequest):
    """The backend does not support a field that changes the meaning of the response. `param` names the field."""

    code = "unsupported_parameter"


class RequirementNotMet(InvalidRequest):
    """The request would lose, or its answer has lost, what its client, its key or its model may not lose. It is no
    failure of the backend, and another attempt would lose the same."""

    code = "requirement_not_met"


class BackendError(GatewayError):
    """The backend failed: an HTTP status before the first byte of the response, an in-band error frame after it.

    `events` are those decoded from the same bytes before the fault. A streaming client receives them if its response
    has begun; before that the fault becomes a status, on which clients recover better, and the events are dropped.
    `opens`: they begin the response, so that its client sees as much of it however the bytes are cut. `words` are the
    backend's own text about its failure, as it wrote it: for the operator's log, never for the client. `too_long`: what
    the backend says about the length of the request, for dialects whose clients look for numbers.
    """

    status = 502
    kind = "upstream"
    code = "upstream_error"
    events: tuple[Event, ...] = ()
    words = ""
    opens = False
    too_long: TooLong | None = None

    def keep(self, events: Iterable[Event]) -> None:
        """Puts these events before the kept ones, as they preceded the fault. Moves notices among them to `notices`."""
        found = tuple(events)
        self.events = (*(event for event in found if not isinstance(event, Notice)), *self.events)
        self.notices = (*(event for event in found if isinstance(event, Notice)), *self.notices)

    def take_events(self) -> list[Event]:
        """Returns the kept events and forgets them."""
        events, self.events = list(self.events), ()
        return events


class BackendRejected(BackendError):
    """The backend refused the request: its error, mapped by the adapter."""


class BackendUnavailable(BackendError):
    """No connection, or the connection was lost before any response."""

    code = "upstream_connection_error"


class BackendTimeout(BackendError):
    """A deadline passed: connect, first byte, idle or total."""

    status = 504
    code = _TIMEOUT


class BackendProtocolError(BackendError):
    """A malformed event or body. The stream fails: skipping an event would lose text in silence."""

    code = "upstream_invalid_event"


# What a client is told of a response that breaks off.
INCOMPLETE: Final = "The backend's response ended before it was complete."


class BackendTruncated(BackendError):
    """The bytes ended before a finish event: never a success."""

    code = "upstream_stream_truncated"


class InvalidToolCall(BackendError):
    """A wrapped call (`call_mcp_tool`) without a usable name or with arguments that are no object."""

    code = "upstream_invalid_tool_call"


class ServerShutdown(GatewayError):
    """The gateway is being stopped and the graceful shutdown timeout has passed."""

    status = 503
    code = "server_shutdown"


class Correction(NamedTuple):
    """A name in a setting that does not exist, and the most similar one that does."""

    written: str
    nearest: str


class SettingsError(GatewayError):
    """The gateway cannot use settings.json; the message names the setting and, if unknown, the nearest known name.

    `place` is the path of the setting, and `correction` the name to change there, where the error knows them.
    """

    code = "invalid_settings"
    place = ""
    correction: Correction | None = None


class OptionError(SettingsError):
    """An adapter cannot use its options; the message begins with the place in its entry, like `read[0].text: `.
    `governs` is the place of an object whose other values cannot be read without this one; empty: there is none."""

    governs: str = ""
