"""Queues finished spans and hands them to the OpenTelemetry SDK's exporter in batches, from a separate thread, in which
they become spans of the SDK, without secrets. Imported only where traces are enabled: it needs the optional packages.

A collector that is down, slow or wrong delays no request: spans that exceed the bounded queue or are rejected are
dropped and counted. The SDK's own batch processor counts its drops only in metrics of the SDK, takes spans of the SDK,
which would be made in the event loop, and waits half a minute at the end.

The SDK's exporter takes any session of `requests`. It ignores what a collector rejects, reads a response of any size,
takes a redirect for a success, and by default obeys the environment's proxies and password files.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
from urllib3.exceptions import HTTPError

from gateway.server.log.logger import LOGGER
from gateway.server.telemetry.tracing.destination import Destination
from gateway.server.telemetry.tracing.span import Attribute, Attributes, Span
from gateway.server.upstream.transport import gateway_version

ANSWER_CAP: Final = 64 * 1024

SCOPE: Final = "dragoman"
# The longest text: names of hosts and containers fit.
SHOWN: Final = 255
_KINDS: Final = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT}
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_BOUND: Final = 2**63

Redact: TypeAlias = Callable[[str], str]

# Requests that may wait, and how many of them go into one batch.
QUEUE: Final = 4096
BATCH: Final = 256
DELAY_S: Final = 1.0
# The time for a batch, with the further attempts that the exporter makes after a transient fault.
TIMEOUT_S: Final = 5.0
CLOSE_S: Final = 2
# The minimum time between two log lines about a failing collector.
REPORT_S: Final = 60


class CollectorSession(requests.Session):
    """`problem` says why the last request failed; empty: it did not. `rejected` is the number of spans that the
    collector has rejected in its response."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.stream = True
        self.problem = ""
        self.rejected = 0

    def request(self, method: str, url: str | bytes, *args: Any, **options: Any) -> requests.Response:
        """Sends one request. Raises the errors of the parent class, HTTPError also for a redirect."""
        self.problem, self.rejected = "", 0
        try:
            response = super().request(method, url, *args, **options)
            with response:
                body = response.raw.read(ANSWER_CAP, decode_content=False)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            self.problem = type(error).__name__
            raise
        if not 200 <= response.status_code < 300:
            self.problem = f"status {response.status_code}"
        if 300 <= response.status_code < 400:
            raise requests.HTTPError(self.problem)
        self.rejected = decode_rejected(body)
        return response


def decode_rejected(body: bytes) -> int:
    """Returns the number of spans that the collector rejected, as its response states."""
    try:
        return max(0, ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans)
    except DecodeError:
        return 0


def sdk_spans(spans: Iterable[Span], resource: Mapping[str, str], redact: Redact) -> list[ReadableSpan]:
    """Returns the spans for an exporter of the SDK. `redact` removes the secrets from every text."""
    about = Resource(_clean(resource, redact))
    scope = InstrumentationScope(SCOPE, resource.get("service.version", ""))
    return [_sdk_span(span, about, scope, redact) for span in spans]


def _sdk_span(span: Span, resource: Resource, scope: InstrumentationScope, redact: Redact) -> ReadableSpan:
    return ReadableSpan(
        _text(span.name, redact),
        SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=_SAMPLED),
        SpanContext(span.trace_id, span.parent_id, is_remote=span.remote) if span.parent_id else None,
        resource,
        _clean(span.attributes, redact),
        [Event(event.name, _clean(event.attributes, redact), event.at) for event in span.events],
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
        start_time=span.begun,
        end_time=span.ended,
        instrumentation_scope=scope,
    )


def _clean(attributes: Attributes, redact: Redact) -> dict[str, Attribute]:
    return {name: _value(value, redact) for name, value in attributes.items()}


def _value(value: Attribute, redact: Redact) -> Attribute:
    match value:
        case bool() | float():
            return value
        case int():
            return max(-_BOUND, min(value, _BOUND - 1))
        case str():
            return _text(value, redact)
        case tuple():
            return tuple(_text(part, redact) for part in value)


def _text(text: str, redact: Redact) -> str:
    """Returns the text without secrets, shortened, and without half a surrogate pair, which no protobuf text may
    contain."""
    return redact(text)[:SHOWN].encode(errors="replace").decode()


class Exporter:
    """Exports spans. `give` accepts spans from any thread without waiting. `exported` and `dropped` count them."""

    def __init__(self, destination: Destination, redact: Callable[[str], str]) -> None:
        self.exported = 0
        self._refused = 0
        self._overflown = 0
        self._given = 0
        self._resource = destination.resource
        self._redact = redact
        self._queue: deque[tuple[Span, ...]] = deque()
        self._closing = threading.Event()
        self._abandoned = False
        self._reported = -float(REPORT_S)
        self._failing = False
        self._session = CollectorSession()
        own = {"user-agent": f"dragoman/{gateway_version()}", "accept-encoding": "identity"}
        self._exporter = OTLPSpanExporter(
            destination.url, headers={**own, **destination.headers}, timeout=TIMEOUT_S, session=self._session
        )
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The number of spans that do not reach the collector."""
        return self._overflown + self._refused

    def put(self, spans: tuple[Span, ...]) -> None:
        """Queues the spans of one request."""
        if len(self._queue) >= QUEUE or self._closing.is_set():
            self._overflown += len(spans)
        else:
            self._given += len(spans)
            self._queue.append(spans)

    def close(self) -> None:
        """Sends the queued spans, for two seconds at most, and stops."""
        self._closing.set()
        self._thread.join(CLOSE_S)
        self._abandoned = True
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # of the SDK
        if left := self._given - self.exported - self._refused:
            LOGGER.warning("%d spans were not exported before the end", left)

    def _run(self) -> None:
        while not self._closing.wait(DELAY_S):
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        while self._queue and not self._abandoned:
            batch = list(chain.from_iterable(self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))))
            self._report(self._send(batch))

    def _send(self, batch: list[Span]) -> str:
        """Sends a batch, more than once where another attempt may help. Returns the last error; empty: none."""
        self._session.problem = "values that cannot be encoded"
        if self._exporter.export(sdk_spans(batch, self._resource, self._redact)) is not SpanExportResult.SUCCESS:
            self._refused += len(batch)
            return self._session.problem
        rejected = min(self._session.rejected, len(batch))
        self._refused += rejected
        self.exported += len(batch) - rejected
        return ""

    def _report(self, problem: str) -> None:
        # `close` has logged the spans that are abandoned at the end.
        if self._abandoned:
            return
        if problem and time.monotonic() - self._reported >= REPORT_S:
            self._reported = time.monotonic()
            self._failing = True
            LOGGER.warning("traces cannot be exported (%s); requests continue, and their spans are dropped", problem)
        elif not problem and self._failing:
            self._failing = False
            LOGGER.info("traces are exported again; %d spans were dropped so far", self.dropped)
