"""One chat request, noted while it is served -> two spans: its own, and that of the backend's part in it."""

import time
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Final

from gateway.events import Event, Finish, ResponseStart, UsageReport
from gateway.exchange import Exchange
from gateway.notices import Notice
from gateway.server.backends import Backend
from gateway.server.tracing.attributes import (
    KEPT,
    answer_attributes,
    call_attributes,
    notice_attributes,
    request_attributes,
    target_attributes,
)
from gateway.server.tracing.span import Attribute, Span, SpanEvent
from gateway.server.tracing.traceparent import Parent, encode_traceparent

if TYPE_CHECKING:
    from gateway.server.call import Call

NANO: Final = 1_000_000_000


class Trace:
    """Told what happens, it does nothing but remember; `conclude` gives the spans away. A request whose trace is not
    recorded only passes its place in the trace on."""

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
        """The backend is asked from now on."""
        if self._own.sampled:
            self._connected = self._now()
            # Kept, since after a reload this may be an entry that the services no longer know.
            self._redact = backend.credential.redact
            self._asked = request_attributes(backend, exchange.conversation)
            self._target = target_attributes(backend, exchange.request, exchange.conversation.model)

    def headers(self, names: Container[str]) -> bytes:
        """The header line that tells the backend its place in the trace; none when its head has one already, as the
        settings may want it."""
        if "traceparent" in names:
            return b""
        return b"traceparent: %b\r\n" % encode_traceparent(self._own._replace(span_id=self._client_id)).encode()

    def note(self, notice: Notice) -> None:
        """Something was changed or seen. Those of a kind are counted: a history may need hundreds of repairs."""
        if self._own.sampled:
            kind = (notice.stage, notice.rule, notice.action)
            at, count = self._notices.get(kind) or (self._now(), 0)
            self._notices[kind] = (at, count + 1)

    def tell(self, event: Event) -> None:
        """What the answer says about itself: its beginning, its end and its tokens."""
        if not self._own.sampled or not isinstance(event, ResponseStart | Finish | UsageReport):
            return
        if isinstance(event, ResponseStart):
            self._first = self._first or self._now()
        elif isinstance(event, Finish):
            self._finished = self._finished or self._now()
        self._told.update(answer_attributes(event, self._redact))

    def conclude(self, call: "Call", status: int) -> None:
        """The request is over."""
        if self._own.sampled:
            ended = self._now()
            server = self._server(call, status, ended)
            self._give((server, self._client(call, ended)) if self._connected else (server,))

    def _server(self, call: "Call", status: int, ended: int) -> Span:
        attributes = {**call_attributes(call, status), **self._asked, **self._told}
        if self._first:
            attributes["gen_ai.response.time_to_first_chunk"] = (self._first - self._begun) / NANO
        return Span(
            trace_id=self._own.trace_id,
            span_id=self._own.span_id,
            parent_id=self._caller.span_id if self._caller else 0,
            remote=self._caller is not None,
            # A name that leads nowhere could be anything, and every one would be a kind of span of its own.
            name=f"chat {call.model[:KEPT]}" if "dragoman.backend" in attributes else "chat",
            kind="server",
            begun=self._begun,
            ended=ended,
            # Other statuses than these tell the client of a fault that is its own, or of its leaving.
            failed=call.code != "-" and (status in (0, 200) or status >= 500),
            attributes=attributes,
            events=tuple(
                SpanEvent("dragoman.notice", at, notice_attributes(*kind, count))
                for kind, (at, count) in self._notices.items()
            ),
        )

    def _client(self, call: "Call", ended: int) -> Span:
        attributes = dict(self._target)
        if call.phase != "connect":
            attributes["http.response.status_code"] = call.backend_status or 200
        broken = call.code != "-" and not self._finished
        if broken:
            attributes["error.type"] = call.code[:KEPT]
        return Span(
            trace_id=self._own.trace_id,
            span_id=self._client_id,
            parent_id=self._own.span_id,
            remote=False,
            name=f"POST {call.backend}",
            kind="client",
            begun=self._connected,
            ended=self._finished or ended,
            failed=broken and call.code != "client_gone",
            attributes=attributes,
            events=(SpanEvent("dragoman.first_event", self._first),) if self._first else (),
        )

    def _now(self) -> int:
        return self._begun + time.monotonic_ns() - self._started
