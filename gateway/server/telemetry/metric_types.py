"""Counts and measures events in one process: counters, gauges and histograms, whose labels are part of their types.

They hold values and nothing else: an increment is one look-up and one addition. `exposition.py` hands the values to
`prometheus_client`, whose own metric objects take a lock for each increment (`docs/dependencies.md`).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, Final, Generic, Literal, TypeAlias, TypeVarTuple

import msgspec

Labels = TypeVarTuple("Labels")
LabelValues: TypeAlias = tuple[str, ...]
# Label values come from closed sets, except error codes and numbers of fields that a backend invents: this limit bounds
# those.
MOST_SERIES: Final = 2000
OTHER: Final = "other"


class Sample(msgspec.Struct, frozen=True):
    """One series of a counter or gauge."""

    name: str
    labels: LabelValues
    value: float


class HistogramSample(msgspec.Struct, frozen=True):
    """One series of a histogram: the count of each bucket (the last one has no bound), and the sum of what was
    observed."""

    name: str
    labels: LabelValues
    buckets: tuple[int, ...]
    sum: float


class Snapshot(msgspec.Struct, frozen=True):
    """The values of all metrics at one moment."""

    counters: tuple[Sample, ...] = ()
    gauges: tuple[Sample, ...] = ()
    histograms: tuple[HistogramSample, ...] = ()


class Metric(Generic[*Labels]):
    """A metric: its name, its help text, and the names of its labels.

    Its methods take a value for each label, in this order. The number of labels is part of the type: mypy refuses a
    call with another number of values.
    """

    kind: ClassVar[Literal["counter", "gauge", "histogram"]]

    def __init__(self, name: str, help: str, *labels: *Labels) -> None:
        self.name = name
        self.help = help
        self.labels = tuple(map(str, labels))


class _Number(Metric[*Labels]):
    def __init__(self, name: str, help: str, *labels: *Labels) -> None:
        super().__init__(name, help, *labels)
        # A metric without labels has one series, and is exported as 0 before anything has happened.
        self._series: dict[tuple[object, ...], float] = {} if labels else {(): 0}
        self._declared = 0
        self._function: Callable[[], float] | None = None

    def declare(self, *labels: *Labels) -> None:
        """Exports a series as 0 before anything has happened: a rate or an increase of Prometheus sees no step from a
        series that is not there. What is declared does not count for the bound of the others."""
        if labels not in self._series:
            self._series[labels] = 0
            self._declared += 1

    def inc(self, *labels: *Labels, by: float = 1) -> None:
        """Increases the value of a series."""
        try:
            self._series[labels] += by
        except KeyError:
            self._add(labels, by)

    def set_function(self: "_Number[()]", function: Callable[[], float]) -> None:
        """Reads the value from the function from now on."""
        self._function = function

    def samples(self) -> Iterator[Sample]:
        """Yields the series as they are now."""
        if self._function is not None:
            yield Sample(self.name, (), self._function())
            return
        for labels, value in self._series.items():
            yield Sample(self.name, tuple(map(str, labels)), value)

    def _add(self, labels: tuple[object, ...], value: float) -> None:
        if len(self._series) - self._declared >= MOST_SERIES:
            labels = (OTHER,) * len(labels)
        self._series[labels] = self._series.get(labels, 0) + value


class Counter(_Number[*Labels]):
    """A number that only grows."""

    kind = "counter"


class Gauge(_Number[*Labels]):
    """A number that grows and shrinks."""

    kind = "gauge"

    def dec(self, *labels: *Labels) -> None:
        """Decreases the value of a series by one."""
        self.inc(*labels, by=-1)

    def replace(self, values: Mapping[tuple[*Labels], float]) -> None:
        """Replaces all series by these, for instance with values that were counted elsewhere."""
        self._series = {labels: value for labels, value in values.items()}


class _Buckets:
    __slots__ = ("counts", "sum")

    def __init__(self, size: int) -> None:
        self.counts = [0] * size
        self.sum = 0.0


class Histogram(Metric[*Labels]):
    """A distribution of seconds or ratios. `bounds` are the upper bounds of its buckets; a last bucket has none."""

    kind = "histogram"

    def __init__(self, name: str, help: str, *labels: *Labels, bounds: tuple[float, ...]) -> None:
        super().__init__(name, help, *labels)
        self.bounds = bounds
        self._series: dict[tuple[object, ...], _Buckets] = {}

    def observe(self, value: float, *labels: *Labels) -> None:
        """Adds an observation to a series."""
        try:
            series = self._series[labels]
        except KeyError:
            series = self._series[labels] = _Buckets(len(self.bounds) + 1)
        series.counts[bisect_left(self.bounds, value)] += 1
        series.sum += value

    def samples(self) -> Iterator[HistogramSample]:
        """Yields the series as they are now."""
        for labels, series in self._series.items():
            yield HistogramSample(self.name, tuple(map(str, labels)), tuple(series.counts), series.sum)


def total(snapshots: Iterable[Snapshot]) -> Snapshot:
    """Returns the sums over several processes."""
    every = tuple(snapshots)
    return Snapshot(
        _add_numbers(sample for one in every for sample in one.counters),
        _add_numbers(sample for one in every for sample in one.gauges),
        _add_histograms(sample for one in every for sample in one.histograms),
    )


def _add_numbers(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    sums: dict[tuple[str, LabelValues], float] = {}
    for one in samples:
        sums[one.name, one.labels] = sums.get((one.name, one.labels), 0) + one.value
    return tuple(Sample(name, labels, value) for (name, labels), value in sums.items())


def _add_histograms(samples: Iterable[HistogramSample]) -> tuple[HistogramSample, ...]:
    sums: dict[tuple[str, LabelValues], HistogramSample] = {}
    for more in samples:
        one = sums.get((more.name, more.labels))
        sums[more.name, more.labels] = more if one is None else _add(one, more)
    return tuple(sums.values())


def _add(one: HistogramSample, other: HistogramSample) -> HistogramSample:
    buckets = tuple(a + b for a, b in zip(one.buckets, other.buckets, strict=True))
    return HistogramSample(one.name, one.labels, buckets, one.sum + other.sum)
