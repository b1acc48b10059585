"""Queues finished spans and sends them to the collector in batches from a separate thread.

A collector that is down, slow or wrong delays no request: spans that exceed the bounded queue or are rejected are
dropped and counted.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import chain, islice
from typing import Final

import httpx

from gateway.server.telemetry.log import LOGGER
from gateway.server.telemetry.tracing.destination import Destination
from gateway.server.telemetry.tracing.encode import decode_rejected, encode_spans
from gateway.server.telemetry.tracing.span import Span
from gateway.server.upstream.transport import gateway_version

# Requests that may wait, and how many of them go into one batch.
QUEUE: Final = 4096
BATCH: Final = 256
DELAY_S: Final = 1.0
TIMEOUT: Final = httpx.Timeout(5, connect=2)
# After a transient fault (OTLP specification: no connection, or one of these) a batch is sent again.
PAUSES_S: Final = (1, 2, 4)
PASSING: Final = frozenset({429, 502, 503, 504})
CLOSE_S: Final = 2
# The minimum time between two log lines about a failing collector.
TELL_S: Final = 60
ANSWER_CAP: Final = 64 * 1024
_FAULTS: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, ValueError)


class Exporter:
    """Exports spans. `give` accepts spans from any thread without waiting. `exported` and `dropped` count them."""

    def __init__(self, destination: Destination, redact: Callable[[str], str]) -> None:
        self.exported = 0
        self._refused = 0
        self._overflown = 0
        self._given = 0
        self._destination = destination
        self._redact = redact
        self._queue: deque[tuple[Span, ...]] = deque()
        self._closing = threading.Event()
        self._abandoned = False
        self._told = -float(TELL_S)
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The number of spans that do not reach the collector."""
        return self._overflown + self._refused

    def give(self, spans: tuple[Span, ...]) -> None:
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
        if left := self._given - self.exported - self._refused:
            LOGGER.warning("%d spans were not exported before the end", left)

    def _run(self) -> None:
        headers = {
            "user-agent": f"dragoman/{gateway_version()}",
            **self._destination.headers,
            "content-type": "application/x-protobuf",
            "accept-encoding": "identity",
        }
        with httpx.Client(timeout=TIMEOUT, trust_env=False, follow_redirects=False, headers=headers) as client:
            while not self._closing.wait(DELAY_S):
                self._send_all(client)
            self._send_all(client)

    def _send_all(self, client: httpx.Client) -> None:
        while self._queue and not self._abandoned:
            batch = list(chain.from_iterable(self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))))
            self._tell(self._send(client, batch))

    def _send(self, client: httpx.Client, batch: list[Span]) -> str:
        """Sends a batch, more than once where a retry may help. Returns the last error; empty: none."""
        try:
            body = encode_spans(batch, self._destination.resource, self._redact)
        except (ValueError, TypeError) as error:
            self._refused += len(batch)
            return type(error).__name__
        for pause in (*PAUSES_S, 0):
            problem, again = self._post(client, body, len(batch))
            if not problem:
                return ""
            if not again or self._closing.wait(pause):
                break
        self._refused += len(batch)
        return problem

    def _post(self, client: httpx.Client, body: bytes, size: int) -> tuple[str, bool]:
        """Makes one attempt: returns the error, and whether a retry may succeed."""
        try:
            with client.stream("POST", self._destination.url, content=body) as response:
                told = b"".join(islice(response.iter_raw(ANSWER_CAP), 1))
        except _FAULTS as error:
            return type(error).__name__, True
        if response.status_code not in (200, 202):
            return f"status {response.status_code}", response.status_code in PASSING
        rejected = min(decode_rejected(told), size)
        self._refused += rejected
        self.exported += size - rejected
        return "", False

    def _tell(self, problem: str) -> None:
        # `close` has logged the spans that are abandoned at the end.
        if self._abandoned:
            return
        if problem and time.monotonic() - self._told >= TELL_S:
            self._told = time.monotonic()
            self._failing = True
            LOGGER.warning("traces cannot be exported (%s); requests go on, their spans are dropped", problem)
        elif not problem and self._failing:
            self._failing = False
            LOGGER.info("traces are exported again; %d spans were dropped so far", self.dropped)
