"""Records one chat request while it is served, as two spans: its own, and that of its backend request."""

import time
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Final

from gateway.core.events import Event, Finish, ResponseStart, UsageReport
from gateway.core.notices import Notice
from gateway.exchange import Exchange
from gateway.server.telemetry.tracing.attributes import (
    KEPT,
    answer_attributes,
    context_attributes,
    notice_attributes,
    request_attributes,
    target_attributes,
)
from gateway.server.telemetry.tracing.span import Attribute, Span, SpanEvent
from gateway.server.telemetry.tracing.traceparent import Parent, encode_traceparent
from gateway.server.upstream.backends import Backend

if TYPE_CHECKING:
    from gateway.server.telemetry.request_context import RequestContext

NANO: Final = 1_000_000_000


class Trace:
    """Records the events of a request; `conclude` hands the spans over for export. A request whose trace is not
    recorded only propagates its trace context."""

    __slots__ = (
        "_asked",
        "_begun",
        "_caller",
        "_client_id",
        "_connected",
        "_finished",
        "_first",
        "_give",
        "_notices",
        "_own",
        "_redact",
        "_started",
        "_target",
        "_told",
    )

    def __init__(
        self, own: Parent, client_id: int, caller: Parent | None, give: Callable[[tuple[Span, ...]], None]
    ) -> None:
        self._own = own
        self._client_id = client_id
        self._caller = caller
        self._give = give
        self._begun = time.time_ns()
        # Durations do not follow the wall clock, which may jump.
        self._started = time.monotonic_ns()
        self._connected = self._first = self._finished = 0
        self._redact: Callable[[str], str] = str
        self._asked: dict[str, Attribute] = {}
        self._target: dict[str, Attribute] = {}
        self._told: dict[str, Attribute] = {}
        self._notices: dict[tuple[str, str, str], tuple[int, int]] = {}

    def connect(self, backend: Backend, exchange: Exchange) -> None:
        """Records the begin of the backend request."""
        if self._own.sampled:
            self._connected = self._now()
            # Kept, since after a reload this backend may no longer be part of the gateway state.
            self._redact = backend.credential.redact
            self._asked = request_attributes(backend, exchange.conversation)
            self._target = target_attributes(backend, exchange.request, exchange.conversation.model)

    def headers(self, names: Container[str]) -> bytes:
        """Returns the header line that propagates the trace context to the backend; empty when the head has one
        already, as the settings may set it."""
        if "traceparent" in names:
            return b""
        return b"traceparent: %b\r\n" % encode_traceparent(self._own._replace(span_id=self._client_id)).encode()

    def note(self, notice: Notice) -> None:
        """Records a notice. Those of a kind are counted: a history may need hundreds of repairs."""
        if self._own.sampled:
            kind = (notice.stage, notice.rule, notice.action)
            at, count = self._notices.get(kind) or (self._now(), 0)
            self._notices[kind] = (at, count + 1)

    def tell(self, event: Event) -> None:
        """Records the begin, the finish and the tokens of the response."""
        if not self._own.sampled or not isinstance(event, ResponseStart | Finish | UsageReport):
            return
        if isinstance(event, ResponseStart):
            self._first = self._first or self._now()
        elif isinstance(event, Finish):
            self._finished = self._finished or self._now()
        self._told.update(answer_attributes(event, self._redact))

    def conclude(self, context: "RequestContext", status: int) -> None:
        """Ends the request and its spans."""
        if self._own.sampled:
            ended = self._now()
            server = self._server(context, status, ended)
            self._give((server, self._client(context, ended)) if self._connected else (server,))

    def _server(self, context: "RequestContext", status: int, ended: int) -> Span:
        attributes = {**context_attributes(context, status), **self._asked, **self._told}
        if self._first:
            attributes["gen_ai.response.time_to_first_chunk"] = (self._first - self._begun) / NANO
        return Span(
            trace_id=self._own.trace_id,
            span_id=self._own.span_id,
            parent_id=self._caller.span_id if self._caller else 0,
            remote=self._caller is not None,
            # An unrouted model name could be any text, and each would make a separate span name.
            name=f"chat {context.model[:KEPT]}" if "dragoman.backend" in attributes else "chat",
            kind="server",
            begun=self._begun,
            ended=ended,
            # Other statuses report a fault of the client, or its disconnect.
            failed=context.code != "-" and (status in (0, 200) or status >= 500),
            attributes=attributes,
            events=tuple(
                SpanEvent("dragoman.notice", at, notice_attributes(*kind, count))
                for kind, (at, count) in self._notices.items()
            ),
        )

    def _client(self, context: "RequestContext", ended: int) -> Span:
        attributes = dict(self._target)
        if context.backend_status:
            attributes["http.response.status_code"] = context.backend_status
        broken = context.code != "-" and not self._finished
        if broken:
            attributes["error.type"] = context.code[:KEPT]
        return Span(
            trace_id=self._own.trace_id,
            span_id=self._client_id,
            parent_id=self._own.span_id,
            remote=False,
            name=f"POST {context.backend}",
            kind="client",
            begun=self._connected,
            ended=self._finished or ended,
            failed=broken and context.code != "client_gone",
            attributes=attributes,
            events=(SpanEvent("dragoman.first_event", self._first),) if self._first else (),
        )

    def _now(self) -> int:
        return self._begun + time.monotonic_ns() - self._started
