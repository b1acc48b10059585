"""Records one chat request while it is served, as two spans: its own, and that of its backend request. Each failed try
before that has a span, too."""

import time
from collections.abc import Callable
from typing import Final

from gateway.core.events import Finish, ResponseStart, UsageReport
from gateway.core.notices import Notice
from gateway.exchange import Exchange
from gateway.server.telemetry.request_context import FailedTry, RequestContext
from gateway.server.telemetry.tracing.attributes import (
    KEPT,
    answer_attributes,
    context_attributes,
    notice_attributes,
    request_attributes,
    target_attributes,
)
from gateway.server.telemetry.tracing.span import Attribute, Span, SpanEvent
from gateway.server.telemetry.tracing.traceparent import Parent
from gateway.server.upstream.backends import Backend

NANO: Final = 1_000_000_000


class Trace:
    """Records the events of one request. `own` is its server span, `client_id` the span of its backend request, and
    `caller` the client's span."""

    __slots__ = (
        "_begun",
        "_caller",
        "_client_id",
        "_connected",
        "_finished",
        "_first",
        "_notices",
        "_redact",
        "_request",
        "_response",
        "_started",
        "_target",
        "_tries",
        "own",
    )

    def __init__(self, own: Parent, client_id: int, caller: Parent | None) -> None:
        self.own = own
        self._client_id = client_id
        self._caller = caller
        self._begun = time.time_ns()
        # Durations do not follow the wall clock, which may jump.
        self._started = time.monotonic_ns()
        self._connected = self._first = self._finished = 0
        self._redact: Callable[[str], str] = str
        self._request: dict[str, Attribute] = {}
        self._target: dict[str, Attribute] = {}
        self._response: dict[str, Attribute] = {}
        self._notices: dict[tuple[str, str, str], tuple[int, int]] = {}
        self._tries: tuple[Span, ...] = ()

    def connect(self, backend: Backend, exchange: Exchange) -> None:
        """Records the begin of the backend request."""
        self._connected = self._now()
        # Kept, since after a reload this backend may no longer be part of the gateway state.
        self._redact = backend.credential.redact
        self._request = request_attributes(backend, exchange.conversation)
        self._target = target_attributes(backend, exchange.request, exchange.conversation.model)

    def note(self, notice: Notice) -> None:
        """Records a notice. Those of a kind are counted: a history may need hundreds of repairs."""
        kind = (notice.stage, notice.rule, notice.action)
        at, count = self._notices.get(kind) or (self._now(), 0)
        self._notices[kind] = (at, count + 1)

    def record(self, event: ResponseStart | UsageReport | Finish) -> None:
        """Records the begin, the finish or the tokens of the response."""
        if isinstance(event, ResponseStart):
            self._first = self._first or self._now()
        elif isinstance(event, Finish):
            self._finished = self._finished or self._now()
        self._response.update(answer_attributes(event, self._redact))

    def fail_try(self, tried: FailedTry, client_id: int) -> None:
        """Ends the span of a try of which the client is not told; that of the next one has this id."""
        if self._connected:
            ended = self._begun + int(tried.at * NANO) - self._started
            code = tried.error.code or "internal_error"
            self._tries = (*self._tries, self._client(tried.backend, tried.status, code, ended))
        self._client_id = client_id
        self._connected = self._first = self._finished = 0

    def conclude(self, context: RequestContext, status: int) -> tuple[Span, ...]:
        """Ends the request, and returns its spans."""
        ended = self._now()
        server = self._server(context, status, ended)
        if not self._connected:
            return (server, *self._tries)
        code = context.code if context.failed and not self._finished else ""
        client = self._client(context.backend, context.backend_status, code, self._finished or ended)
        return (server, *self._tries, client)

    def _server(self, context: RequestContext, status: int, ended: int) -> Span:
        attributes = {**context_attributes(context, status), **self._request, **self._response}
        if self._first:
            attributes["gen_ai.response.time_to_first_chunk"] = (self._first - self._begun) / NANO
        return Span(
            trace_id=self.own.trace_id,
            span_id=self.own.span_id,
            parent_id=self._caller.span_id if self._caller else 0,
            remote=self._caller is not None,
            # An unrouted model name could be any text, and each would make a separate span name.
            name=f"chat {context.model[:KEPT]}" if "dragoman.backend" in attributes else "chat",
            kind="server",
            begun=self._begun,
            ended=ended,
            # Other statuses report a fault of the client, or its disconnect.
            failed=context.failed and (status in (0, 200) or status >= 500),
            attributes=attributes,
            events=tuple(
                SpanEvent("dragoman.notice", at, notice_attributes(*kind, count))
                for kind, (at, count) in self._notices.items()
            ),
        )

    def _client(self, backend: str, status: int, code: str, ended: int) -> Span:
        """Returns the span of a backend request, which has failed with this code if there is one."""
        attributes = dict(self._target)
        if status:
            attributes["http.response.status_code"] = status
        if code:
            attributes["error.type"] = code[:KEPT]
        return Span(
            trace_id=self.own.trace_id,
            span_id=self._client_id,
            parent_id=self.own.span_id,
            remote=False,
            name=f"POST {backend}",
            kind="client",
            begun=self._connected,
            ended=ended,
            failed=code not in ("", "client_gone"),
            attributes=attributes,
            events=(SpanEvent("dragoman.first_event", self._first),) if self._first else (),
        )

    def _now(self) -> int:
        return self._begun + time.monotonic_ns() - self._started
