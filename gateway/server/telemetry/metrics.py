"""Counts and measures events as values that can be summed and exported."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

Labels: TypeAlias = tuple[str, ...]
Series: TypeAlias = tuple[str, Labels]

QUICK: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
# Label values come from closed sets, except error codes that a backend invents: this limit bounds those.
MOST_SERIES: Final = 2000
OTHER: Final = "other"


class Family(msgspec.Struct, frozen=True):
    """One metric: its help text and its labels. `bounds` are those of a histogram's buckets."""

    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: Labels = ()
    bounds: tuple[float, ...] = ()


def _counter(help: str, *labels: str) -> Family:
    return Family("counter", help, labels)


FAMILIES: Final[Mapping[str, Family]] = {
    "gateway_requests_total": _counter("Requests answered.", "route", "key", "status"),
    "gateway_errors_total": _counter("Requests that failed, whoever's fault it was.", "code", "phase"),
    "gateway_upstream_errors_total": _counter("Failures of a backend.", "backend", "code", "phase"),
    "gateway_upstream_rejections_total": _counter("Histories that a backend refused.", "backend", "rule"),
    "gateway_truncated_streams_total": _counter("Answers of a backend that ended too early.", "backend"),
    "gateway_ttfb_timeouts_total": _counter("Backends that did not begin to answer in time.", "backend"),
    "gateway_unknown_events_total": _counter("What a backend sent and nobody here knows.", "backend"),
    "gateway_late_events_total": _counter("What a backend sent after the end of its answer.", "backend"),
    "gateway_client_aborts_total": _counter("Clients that left before the answer was complete.", "phase"),
    "gateway_notices_total": _counter("Changes and odd things that were told.", "stage", "rule"),
    "gateway_tokens_total": _counter("Tokens as backends report them.", "backend", "key", "kind"),
    "gateway_log_drops_total": _counter("Log lines that came too fast or could not be written."),
    "gateway_spans_total": _counter("Spans that the collector took."),
    "gateway_span_drops_total": _counter("Spans that did not fit into the queue or that the collector did not take."),
    "gateway_config_reloads_total": _counter("Settings that were read again and are in use."),
    "gateway_config_reload_failures_total": _counter("Settings that could not be used; the old ones stayed."),
    "gateway_worker_restarts_total": _counter("Workers that ended by themselves and were started again."),
    "gateway_store_failures_total": _counter("Failures of the store that the workers share."),
    "gateway_running_requests": Family("gauge", "Chat requests being served now."),
    "gateway_open_streams": Family("gauge", "Those of them that are streamed."),
    "gateway_workers": Family("gauge", "Workers that serve now."),
    "gateway_request_seconds": Family("histogram", "From a request's head to the end of its answer.", ("route",), SLOW),
    "gateway_first_event_seconds": Family(
        "histogram", "From the request's head to the first event of the backend's answer.", ("backend",), SLOW
    ),
    "gateway_overhead_seconds": Family(
        "histogram",
        "What a successful chat request took without waiting for its body and the backend.",
        (),
        QUICK,
    ),
}

# Notices that have a counter of their own, by rule.
OF_RULE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("UNKNOWN_EVENT", "UNKNOWN_VARIANT", "UNKNOWN_MASK_PATH", "PART_UNKNOWN"), "gateway_unknown_events_total"
    ),
    **dict.fromkeys(("LATE_EVENT", "LATE_CONTENT", "LATE_FAULT", "TAIL_BROKEN"), "gateway_late_events_total"),
}


class Counted(msgspec.Struct, frozen=True):
    """The value of a counter or gauge."""

    name: str
    labels: Labels
    value: float


class Measured(msgspec.Struct, frozen=True):
    """A histogram: the count of each bucket (the last one has no bound), and the sum of the measurements."""

    name: str
    labels: Labels
    buckets: tuple[int, ...]
    sum: float


class Snapshot(msgspec.Struct, frozen=True):
    """The values of all metrics at one moment."""

    counted: tuple[Counted, ...] = ()
    measured: tuple[Measured, ...] = ()


class Counter:
    """The count of one series so far."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Histogram:
    """The bucket counts of one series, and the sum of its measurements."""

    __slots__ = ("_bounds", "buckets", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Adds a measurement."""
        self.buckets[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._counters: dict[Series, Counter] = {}
        self._histograms: dict[Series, Histogram] = {}
        self._reads: dict[str, Callable[[], float]] = {}
        self._ends: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Increases a counter."""
        self._counter(name, labels).value += by

    def observe(self, name: str, seconds: float, *labels: str) -> None:
        """Adds a measurement to a histogram."""
        self._histogram(name, labels).observe(seconds)

    def end(self, route: str, key: str, status: int, seconds: float) -> None:
        """Records a completed request. Counts and measures in one step, since this is the most frequent call."""
        series = self._ends.get((route, key, status))
        if series is None:
            counter = self._counter("gateway_requests_total", (route, key, str(status)))
            series = self._ends[route, key, status] = counter, self._histogram("gateway_request_seconds", (route,))
        counter, histogram = series
        counter.value += 1
        histogram.observe(seconds)

    def read(self, name: str, value: Callable[[], float]) -> None:
        """Reads this metric's value from the function from now on."""
        self._reads[name] = value

    def value(self, name: str, *labels: str) -> float:
        """Returns the counter's value."""
        counter = self._counters.get((name, labels))
        return 0 if counter is None else counter.value

    def snapshot(self) -> Snapshot:
        """Returns all metrics as they are now."""
        counted = [Counted(name, labels, counter.value) for (name, labels), counter in self._counters.items()]
        counted += (Counted(name, (), value()) for name, value in self._reads.items())
        measured = (
            Measured(name, labels, tuple(histogram.buckets), histogram.sum)
            for (name, labels), histogram in self._histograms.items()
        )
        return Snapshot(tuple(counted), tuple(measured))

    def _counter(self, name: str, labels: Labels) -> Counter:
        counter = self._counters.get((name, labels))
        if counter is None:
            if len(self._counters) >= MOST_SERIES:
                labels = (OTHER,) * len(labels)
            counter = self._counters.setdefault((name, labels), Counter())
        return counter

    def _histogram(self, name: str, labels: Labels) -> Histogram:
        histogram = self._histograms.get((name, labels))
        if histogram is None:
            histogram = self._histograms[name, labels] = Histogram(FAMILIES[name].bounds)
        return histogram


def add(snapshots: Iterable[Snapshot]) -> Snapshot:
    """Returns the sums over several processes."""
    values: dict[Series, float] = {}
    measures: dict[Series, Measured] = {}
    for snapshot in snapshots:
        for one in snapshot.counted:
            values[one.name, one.labels] = values.get((one.name, one.labels), 0) + one.value
        for more in snapshot.measured:
            before = measures.get((more.name, more.labels))
            measures[more.name, more.labels] = more if before is None else _sum(before, more)
    counted = tuple(Counted(name, labels, value) for (name, labels), value in values.items())
    return Snapshot(counted, tuple(measures.values()))


def _sum(one: Measured, other: Measured) -> Measured:
    buckets = tuple(a + b for a, b in zip(one.buckets, other.buckets, strict=True))
    return Measured(one.name, one.labels, buckets, one.sum + other.sum)
