"""Queues finished spans and hands them to the OpenTelemetry SDK's exporter in batches, from a separate thread.

A collector that is down, slow or wrong delays no request: spans that exceed the bounded queue or are rejected are
dropped and counted. The SDK's own batch processor counts its drops only in metrics of the SDK, takes spans of the SDK,
which would be made in the event loop, and waits half a minute at the end.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from gateway.server.log.logger import LOGGER
from gateway.server.telemetry.tracing.collector_session import CollectorSession
from gateway.server.telemetry.tracing.destination import Destination
from gateway.server.telemetry.tracing.sdk_spans import sdk_spans
from gateway.server.telemetry.tracing.span import Span
from gateway.server.upstream.transport import gateway_version

# Requests that may wait, and how many of them go into one batch.
QUEUE: Final = 4096
BATCH: Final = 256
DELAY_S: Final = 1.0
# The time for a batch, with the further attempts that the exporter makes after a transient fault.
TIMEOUT_S: Final = 5.0
CLOSE_S: Final = 2
# The minimum time between two log lines about a failing collector.
REPORT_S: Final = 60


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
