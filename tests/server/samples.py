"""Reads metrics: the text of `/metrics` with the parser of prometheus_client, and the values of one process."""

from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from gateway.server.telemetry.metrics import Metrics


class Exported(NamedTuple):
    """One line of the text, whatever the order of its labels and the form of its number."""

    name: str
    labels: frozenset[tuple[str, str]]
    value: float


def exported(text: str) -> frozenset[Exported]:
    """The samples of a text."""
    families = text_string_to_metric_families(text)
    samples = (sample for family in families for sample in family.samples)
    return frozenset(Exported(sample.name, frozenset(sample.labels.items()), sample.value) for sample in samples)


def missing(text: str, *lines: str) -> list[str]:
    """Those of the lines that the text does not hold."""
    found = exported(text)
    return [line for line in lines if not exported(f"{line}\n") <= found]


def total(text: str, series: str) -> float:
    """The sum of all samples with this name and at least these labels, written as `name{label="value"}`."""
    (wanted,) = exported(f"{series} 0\n")
    return sum(one.value for one in exported(text) if one.name == wanted.name and one.labels >= wanted.labels)


def value_of(metrics: Metrics, name: str, *labels: str) -> float:
    """The value of a counter or gauge; 0 before it has counted anything."""
    assert name in {metric.name for metric in metrics}
    snapshot = metrics.snapshot()
    return sum(one.value for one in (*snapshot.counters, *snapshot.gauges) if (one.name, one.labels) == (name, labels))
