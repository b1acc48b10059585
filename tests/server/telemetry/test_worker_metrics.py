"""Tests the sums over workers: counters survive the end of a worker, gauges do not."""

from pathlib import Path

from gateway.server.telemetry.exposition import expose
from gateway.server.telemetry.metric_types import Snapshot
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.worker_metrics import WorkerMetrics
from tests.server.samples import missing


def counted(requests: int, seconds: float) -> Snapshot:
    metrics = Metrics()
    metrics.workers.inc()
    metrics.requests.inc("chat", "openai_chat", "-", "200", by=requests)
    metrics.overhead_seconds.observe(seconds)
    return metrics.snapshot()


def lacks(snapshot: Snapshot, *lines: str) -> list[str]:
    return missing(expose(Metrics(), snapshot, "")[0].decode(), *lines)


def test_the_sum_of_the_living_and_the_ended(tmp_path: Path) -> None:
    first, second = WorkerMetrics(tmp_path, "1"), WorkerMetrics(tmp_path, "2")
    second.publish(counted(3, 0.002))
    lines = (
        'gateway_requests_total{route="chat",dialect="openai_chat",key="-",status="200"} 7',
        "gateway_workers 2",
        'gateway_overhead_seconds_bucket{le="0.0025"} 2',
        "gateway_overhead_seconds_sum 0.004",
    )
    assert lacks(first.total(counted(4, 0.002)), *lines) == []
    first.retire("2")
    lines = (
        'gateway_requests_total{route="chat",dialect="openai_chat",key="-",status="200"} 8',
        "gateway_workers 1",
        'gateway_overhead_seconds_bucket{le="1.0"} 1',
        'gateway_overhead_seconds_bucket{le="+Inf"} 2',
    )
    assert lacks(first.total(counted(5, 2)), *lines) == []


def test_what_cannot_be_read_or_written_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / "9.live").write_bytes(b"torn")
    worker_metrics = WorkerMetrics(tmp_path, "1")
    assert worker_metrics.total(counted(1, 1)) == counted(1, 1)
    worker_metrics.retire("8")
    WorkerMetrics(tmp_path / "gone", "1").publish(counted(1, 1))
