"""Holds the facts of one client request while it is served, and tells them to its observers."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.events import Event, Finish, ResponseStart, UsageReport
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.notices import NO_CHANGE, Notice
from gateway.core.secrets import without_secrets
from gateway.dialect import AnswerHead, AnswerTimes, Dialect, RequestHead
from gateway.exchange import Exchange
from gateway.server.access.api_keys import ANONYMOUS
from gateway.server.http.response_writer import Writer
from gateway.server.log.logger import one_line
from gateway.server.log.request_id import request_id
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings

CLIENT_DISCONNECTED: Final = 499
# The backend and model of a request before routing.
UNROUTED: Final = "-"
# The route of chat requests.
CHAT: Final = "chat"
# The route of requests that are passed on as they are.
PASSED: Final = "passed"
# The code of a request that has not failed.
NO_ERROR: Final = "-"
# The number of characters of a client's chosen name that a log line shows.
SHOWN: Final = 200
# The events of a response that are recorded.
_RECORDED: Final = frozenset[type]({Notice, UsageReport, ResponseStart, Finish})


_P = ParamSpec("_P")
_R = TypeVar("_R")


class Outcome(msgspec.Struct, frozen=True):
    """How a request ended, as the access line and the event bus show it. `ms` counts from the request's head, and
    `changes` by stage: `repair=2; trim=1`."""

    method: str
    path: str
    key: str
    model: str
    backend: str
    status: int
    code: str
    ms: float
    changes: str


class FailedTry(NamedTuple):
    """A try of a request with one model, which has failed: the name of the model in the settings, its backend, the
    phase in which it failed, the status of the backend's response (0: there was none), and when (monotonic clock)."""

    error: GatewayError
    model: str
    backend: str
    phase: str
    status: int
    at: float


class RequestObserver:
    """Observes requests. A subclass overrides the methods that it needs; the others are never called.

    The methods of one request are called in this order: `begin` first, `conclude` last and always.
    """

    def begin(self, context: "RequestContext") -> None:
        """The request's head has arrived."""

    def writer(self, context: "RequestContext", dialect: Dialect, head: RequestHead, writer: Writer) -> Writer:
        """The request with this head is one of this dialect. Returns what writes the response to the client: the writer
        given, or one that sees what it writes."""
        return writer

    def body(self, context: "RequestContext", body: bytes) -> None:
        """The whole body of the request has arrived."""

    def route(self, context: "RequestContext", entry: ModelSettings, backend: Backend) -> None:
        """The model has an entry in the settings, and the entry names a backend; nothing is prepared for it yet."""

    def connect(self, context: "RequestContext", backend: Backend, exchange: Exchange) -> None:
        """The request to the backend is ready to be sent."""

    def sent(self, context: "RequestContext") -> None:
        """The request has been written to the backend."""

    def answer(self, context: "RequestContext", answer: BackendResponse) -> BackendResponse:
        """The head of the backend's response has arrived. Returns what reads its body: the response given, or one that
        sees what it reads."""
        return answer

    def answer_head(self, context: "RequestContext", head: AnswerHead) -> AnswerHead:
        """Returns the facts of the answer: these, or some that are seen when they are read."""
        return head

    def keep_alive(self, context: "RequestContext", data: bytes) -> None:
        """These bytes, which keep the client's connection alive, will be written in a moment."""

    def events(self, context: "RequestContext", events: Sequence[Event]) -> None:
        """The answer has these events."""

    def notices(self, context: "RequestContext", notices: Sequence[Notice]) -> None:
        """The request or its response was changed, or something was seen in it. All that is known at once is told at
        once: a long history may have hundreds of notices."""

    def open_stream(self, context: "RequestContext") -> None:
        """The response will be streamed."""

    def first_event(self, context: "RequestContext", seconds: float) -> None:
        """The first events of the response have arrived, so long after the request's head."""

    def response(self, context: "RequestContext", event: ResponseStart | Finish) -> None:
        """The response has begun or finished."""

    def usage(self, context: "RequestContext", usage: UsageReport) -> None:
        """The tokens of the response are known."""

    def error(self, context: "RequestContext", error: GatewayError) -> None:
        """The request has failed."""

    def failed_try(self, context: "RequestContext", tried: FailedTry) -> None:
        """A try of the request has failed with an error that does not end it: another model is asked, or the error of
        another try is the client's. Where it is that of this one, `error` follows."""

    def error_writer(self, context: "RequestContext", error: GatewayError, writer: Writer) -> Writer:
        """The client is about to be told of this error. Returns what writes that: the writer given, or one that sees
        what it writes."""
        return writer

    def disconnect(self, context: "RequestContext") -> None:
        """The client has disconnected before the response was complete."""

    def conclude(self, context: "RequestContext", outcome: Outcome) -> None:
        """The request has ended."""


_O = TypeVar("_O", bound=RequestObserver)


class Observers:
    """The observers of all requests, by method: what no observer overrides costs no call."""

    def __init__(self, *observers: RequestObserver) -> None:
        self._all = observers
        self.begin = _overriding(observers, RequestObserver.begin)
        self.writer = _overriding(observers, RequestObserver.writer)
        self.body = _overriding(observers, RequestObserver.body)
        self.route = _overriding(observers, RequestObserver.route)
        self.connect = _overriding(observers, RequestObserver.connect)
        self.sent = _overriding(observers, RequestObserver.sent)
        self.answer = _overriding(observers, RequestObserver.answer)
        self.answer_head = _overriding(observers, RequestObserver.answer_head)
        self.keep_alive = _overriding(observers, RequestObserver.keep_alive)
        self.events = _overriding(observers, RequestObserver.events)
        self.notices = _overriding(observers, RequestObserver.notices)
        self.open_stream = _overriding(observers, RequestObserver.open_stream)
        self.first_event = _overriding(observers, RequestObserver.first_event)
        self.response = _overriding(observers, RequestObserver.response)
        self.usage = _overriding(observers, RequestObserver.usage)
        self.error = _overriding(observers, RequestObserver.error)
        self.failed_try = _overriding(observers, RequestObserver.failed_try)
        self.error_writer = _overriding(observers, RequestObserver.error_writer)
        self.disconnect = _overriding(observers, RequestObserver.disconnect)
        self.conclude = _overriding(observers, RequestObserver.conclude)

    def find(self, kind: type[_O]) -> _O | None:
        """Returns the observer of this class; None: there is none."""
        return next((one for one in self._all if isinstance(one, kind)), None)

    def joined(self, *observers: RequestObserver) -> "Observers":
        """Returns these observers and some more, which come last."""
        return Observers(*self._all, *observers)


def _overriding(
    observers: Sequence[RequestObserver], method: Callable[Concatenate[RequestObserver, _P], _R]
) -> tuple[Callable[_P, _R], ...]:
    name = method.__name__
    return tuple(getattr(one, name) for one in observers if getattr(type(one), name) is not method)


class RequestContext:
    """One request: its client, its backend, the changes made to it, and its outcome.

    `route` names the route in metrics; `dialect` is the client's, and `paths` are those of its clients; `path_template`
    is the path of the route, with its parameter (`/v1/models/{name}`). `credential` is the environment variable of the
    credential that the backend refused, `unknown_url` the address that it does not know; `waited` the seconds spent
    waiting for the request's body and for the backend; `traceparent` the position in a trace that is sent to the
    backend, empty where there is no trace.
    `started` is the time of its head, `asked` that at which its backend was asked, and `answered` that of its first
    events (monotonic clock; 0: not yet). `observers` are those of all requests, and any that joined for this one.
    `passed_bytes` is the size of a body that is passed on as it is, which `body` never holds.
    `failed_tries` are those that observers know already.
    `usage` is the last report of its tokens, and `prompt_tokens` and `completion_tokens` are those that metrics have
    counted for it.

    What a request consists of is referred to until it has ended, for who keeps one that fails: its `head` (None until
    its key is accepted), its `body`, its route (`routed`), its `exchange`, the last `answer` of its backend with how
    many bytes of it were `received` before the ones that failed, which are the `error_body` (None: no bytes did;
    `error_ends`: its end is not cut off), how many bytes `earlier` rounds were answered with, and when its body was
    read (`body_at`) and the head of that answer came (`head_at`).
    """

    __slots__ = (
        "_recorded",
        "_see",
        "answer",
        "answered",
        "asked",
        "attempt",
        "backend",
        "backend_status",
        "begun",
        "body",
        "body_at",
        "changes",
        "code",
        "completion_tokens",
        "concluded",
        "credential",
        "dialect",
        "earlier",
        "error_body",
        "error_ends",
        "exchange",
        "explain",
        "failed_tries",
        "head",
        "head_at",
        "headers",
        "id",
        "key",
        "method",
        "model",
        "notices",
        "observers",
        "passed_bytes",
        "path",
        "path_template",
        "paths",
        "phase",
        "prompt_tokens",
        "received",
        "route",
        "routed",
        "seconds",
        "started",
        "streamed",
        "traceparent",
        "unknown_url",
        "usage",
        "waited",
    )

    def __init__(
        self,
        method: str,
        path: str,
        route: str,
        headers: Mapping[bytes, bytes],
        observers: Observers,
        paths: FieldPaths = CANONICAL_PATHS,
        dialect: str = "-",
        path_template: str = "",
    ) -> None:
        self.id = request_id(headers.get(b"x-request-id"))
        self.method = method
        self.path = path
        self.route = route
        self.headers = headers
        self.key = ANONYMOUS
        self.model = self.backend = UNROUTED
        self.code = NO_ERROR
        self.phase = "request"
        self.backend_status = 0
        self.credential = ""
        self.unknown_url = ""
        self.attempt = 0
        self.changes: dict[str, int] = {}
        self.notices: list[Notice] = []
        self.paths = paths
        self.dialect = dialect
        self.path_template = path_template or path
        self.explain = headers.get(b"x-dragoman-explain", b"") in (b"1", b"true")
        self.traceparent = ""
        self.streamed = False
        self.begun = False
        self.asked = 0.0
        self.answered = 0.0
        self.waited = 0.0
        self.seconds = 0.0
        self.usage: UsageReport | None = None
        self._recorded = _RECORDED
        self._see: Callable[[Sequence[Event]], None] | None = None
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.passed_bytes = 0
        self.head: RequestHead | None = None
        self.body: bytes | None = None
        self.body_at = 0.0
        self.routed: tuple[ModelSettings, Backend] | None = None
        self.exchange: Exchange | None = None
        self.answer: BackendResponse | None = None
        self.head_at = 0.0
        self.earlier = self.received = 0
        self.error_body: bytes | None = None
        self.error_ends = False
        self.failed_tries: tuple[FailedTry, ...] = ()
        self.concluded = False
        self.observers = observers
        self.started = time.monotonic()
        for begin in observers.begin:
            begin(self)

    @property
    def ms(self) -> float:
        """Milliseconds since the request's head arrived."""
        return _ms(time.monotonic() - self.started)

    def times(self) -> AnswerTimes:
        """Returns how long each part of the answer has taken so far."""
        now = time.monotonic()
        asked = self.asked or now
        answered = self.answered or now
        return AnswerTimes(_ns(asked - self.started), _ns(answered - asked), _ns(now - answered))

    @property
    def failed(self) -> bool:
        """Whether the request has failed."""
        return self.code != NO_ERROR

    @property
    def changed(self) -> str:
        """Changes by stage: `repair=2; trim=1`."""
        return "; ".join(f"{stage}={count}" for stage, count in self.changes.items())

    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        """Returns the headers that report the gateway's own work in a response."""
        headers: list[tuple[bytes, bytes]] = []
        if self.backend != UNROUTED:
            headers.append((b"x-dragoman-backend", _encoded(self.backend)))
        if self.changes:
            headers.append((b"x-dragoman-changes", self.changed.encode("ascii")))
        return headers

    def connect(self, backend: Backend, exchange: Exchange) -> None:
        """Records that the request to the backend is ready to be sent."""
        self.phase = "connect"
        for connect in self.observers.connect:
            connect(self, backend, exchange)

    def try_backend(self) -> None:
        """Records an attempt to connect to the backend, which need not be the first one."""
        self.attempt += 1
        self.phase = "connect"

    def await_head(self) -> None:
        """Records that the request has been written to the backend."""
        self.phase = "head"
        for sent in self.observers.sent:
            sent(self)

    def receive_head(self, status: int) -> None:
        """Records the status of the backend's response."""
        self.backend_status = status

    @property
    def is_sent(self) -> bool:
        """Whether the request has been written to the backend, so that it may run there."""
        return self.phase in ("head", "stream")

    def note(self, notices: Sequence[Notice]) -> None:
        """Records notices, and counts the changes among them."""
        if not notices:
            return
        for notice in notices:
            if notice.action not in NO_CHANGE:
                self.changes[notice.stage] = self.changes.get(notice.stage, 0) + 1
        for observe in self.observers.notices:
            observe(self, notices)

    def open_stream(self) -> None:
        """Records that the response will be streamed."""
        self.streamed = True
        for open_stream in self.observers.open_stream:
            open_stream(self)

    def begin_response(self) -> None:
        """Records the arrival of the response's first events; later ones change nothing."""
        if not self.begun:
            self.begun = True
            self.phase = "stream"
            self.answered = time.monotonic()
            seconds = self.answered - self.started
            for first_event in self.observers.first_event:
                first_event(self, seconds)

    def record(self, events: Sequence[Event]) -> None:
        """Records the notices, the usage, the begin and the finish among the events of a response."""
        if self._recorded.isdisjoint(map(type, events)):
            return
        if self._see is not None:
            self._see(events)
        for event in events:
            # A read has many deltas.
            if type(event) not in _RECORDED:
                continue
            if type(event) is Notice:
                self.note((event,))
            elif type(event) is UsageReport:
                self.usage = event
                for usage in self.observers.usage:
                    usage(self, event)
            elif type(event) is ResponseStart or type(event) is Finish:
                for response in self.observers.response:
                    response(self, event)

    def watch(self, see: Callable[[Sequence[Event]], None] | None = None, kinds: frozenset[type] = frozenset()) -> None:
        """Has events of the response shown to `see` before they are sent: those that are sent together with one of
        these kinds, and perhaps others. No other function sees them from now on; None: none does."""
        self._recorded, self._see = _RECORDED | kinds, see

    def route_to(self, model: ModelSettings, backend: Backend) -> None:
        """Records that the request goes to this backend; what was said of a try with another one is no longer so."""
        self.backend, self.routed = backend.name, (model, backend)
        self.phase, self.backend_status, self.credential, self.unknown_url = "connect", 0, "", ""
        self.begun, self.answered, self.usage = False, 0.0, None
        self.prompt_tokens = self.completion_tokens = self.earlier = self.received = 0
        self.exchange, self.answer, self.error_body, self.error_ends = None, None, None, False
        for observe in self.observers.route:
            observe(self, model, backend)

    def fail_try(self, tried: FailedTry) -> None:
        """Records a try that does not end the request."""
        self.failed_tries = (*self.failed_tries, tried)
        for observe in self.observers.failed_try:
            observe(self, tried)

    def is_told(self, error: GatewayError) -> bool:
        """Returns whether the error is that of a failed try, which observers know already."""
        return any(one.error is error for one in self.failed_tries)

    def fail(self, error: GatewayError) -> None:
        """Records the error that ends the request."""
        self.code = error.code or NO_ERROR
        self.note(error.notices)
        for observe in self.observers.error:
            observe(self, error)

    def conclude(self, status: int) -> None:
        """Records the end of the request, once."""
        if self.concluded:
            return
        self.concluded = True
        if status == 200 and not self.begun and self.attempt and self.code == NO_ERROR:
            # The first event of a whole response may be its last.
            self.begin_response()
        self.seconds = time.monotonic() - self.started
        outcome = Outcome(
            self.method,
            shown(self.path[:SHOWN]),
            self.key,
            shown(self.model[:SHOWN]),
            self.backend,
            status,
            self.code,
            _ms(self.seconds),
            self.changed if self.changes else "",
        )
        for conclude in self.observers.conclude:
            conclude(self, outcome)
        # Watchers may hold this for longer than the request takes.
        self.head = self.body = self.routed = self.exchange = self.answer = self.error_body = None


@lru_cache
def shown(name: str) -> str:
    """Returns a name that a client has chosen, and that is cut at `SHOWN`, without what looks like a key: a client that
    confuses its fields sends one as the model or in the path."""
    return without_secrets(name)


@lru_cache
def _encoded(name: str) -> bytes:
    return one_line(name).encode("ascii", "replace")


def _ms(seconds: float) -> float:
    # With one decimal place. `round` would write the number as text and read it again.
    return int(seconds * 10_000 + 0.5) / 10


def _ns(seconds: float) -> int:
    # An answer that comes in one piece has no later part, but clients divide by its time.
    return max(int(seconds * 1_000_000_000), 1)
