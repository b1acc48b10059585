"""Encodes a snapshot of the metrics as Prometheus text or, where a client asks for it, as OpenMetrics."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from gateway.server.telemetry.metric_types import Counter, Gauge, Histogram, HistogramSample, Sample, Snapshot
from gateway.server.telemetry.metrics import Metrics

OPENMETRICS: Final = "application/openmetrics-text"


def expose(metrics: Metrics, snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    """Returns the metrics with the values of the snapshot, and their media type, for a client with this Accept header.

    The library receives no more of that header than the name of a format: it raises TypeError for a version that is no
    number, and puts any other version into the media type.
    """
    wanted = any(one.partition(";")[0].strip().lower() == OPENMETRICS for one in accept.split(","))
    encode, media_type = choose_encoder(OPENMETRICS if wanted else "")
    return encode(SnapshotCollector(metrics, snapshot)), media_type


class SnapshotCollector(Collector):
    """Collects all metrics, those without a series included. Series are sorted by the values of their labels."""

    def __init__(self, metrics: Metrics, snapshot: Snapshot) -> None:
        self._metrics = metrics
        self._numbers: dict[str, list[Sample]] = {}
        self._histograms: dict[str, list[HistogramSample]] = {}
        for number in sorted((*snapshot.counters, *snapshot.gauges), key=lambda one: one.labels):
            self._numbers.setdefault(number.name, []).append(number)
        for histogram in sorted(snapshot.histograms, key=lambda one: one.labels):
            self._histograms.setdefault(histogram.name, []).append(histogram)

    def collect(self) -> Iterator[Metric]:
        for metric in self._metrics:
            match metric:
                case Counter():
                    yield self._number(CounterMetricFamily(metric.name, metric.help, labels=metric.labels), metric.name)
                case Gauge():
                    yield self._number(GaugeMetricFamily(metric.name, metric.help, labels=metric.labels), metric.name)
                case Histogram():
                    yield self._histogram(metric)

    def _number(self, family: CounterMetricFamily | GaugeMetricFamily, name: str) -> Metric:
        for sample in self._numbers.get(name, ()):
            family.add_metric(sample.labels, sample.value)
        return family

    def _histogram(self, metric: Histogram[*tuple[object, ...]]) -> Metric:
        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        bounds = [*map(floatToGoString, metric.bounds), "+Inf"]
        for sample in self._histograms.get(metric.name, ()):
            counts = accumulate(sample.buckets)
            family.add_metric(sample.labels, [*zip(bounds, counts, strict=True)], sample.sum)
        return family
