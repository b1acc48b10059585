"""Sums over workers: counters survive those who counted, gauges do not."""

from pathlib import Path

from gateway.server.telemetry.metrics import Metrics, Snapshot
from gateway.server.telemetry.metrics_text import metrics_text
from gateway.server.telemetry.worker_metrics import WorkerMetrics


def counted(requests: int, seconds: float) -> Snapshot:
    metrics = Metrics()
    metrics.read("gateway_workers", lambda: 1)
    metrics.count("gateway_requests_total", "chat", "-", "200", by=requests)
    metrics.observe("gateway_overhead_seconds", seconds)
    return metrics.snapshot()


def lines(snapshot: Snapshot) -> list[str]:
    return metrics_text(snapshot).splitlines()


def test_the_sum_of_the_living_and_the_ended(tmp_path: Path) -> None:
    first, second = WorkerMetrics(tmp_path, "1"), WorkerMetrics(tmp_path, "2")
    second.show(counted(3, 0.002))
    told = lines(first.total(counted(4, 0.002)))
    assert 'gateway_requests_total{route="chat",key="-",status="200"} 7' in told
    assert "gateway_workers 2" in told
    assert 'gateway_overhead_seconds_bucket{le="0.0025"} 2' in told
    assert "gateway_overhead_seconds_sum 0.004000" in told
    first.retire("2")
    told = lines(first.total(counted(5, 2)))
    assert 'gateway_requests_total{route="chat",key="-",status="200"} 8' in told
    assert "gateway_workers 1" in told
    assert 'gateway_overhead_seconds_bucket{le="1"} 1' in told
    assert 'gateway_overhead_seconds_bucket{le="+Inf"} 2' in told


def test_what_cannot_be_read_or_written_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / "9.live").write_bytes(b"torn")
    worker_metrics = WorkerMetrics(tmp_path, "1")
    assert worker_metrics.total(counted(1, 1)) == counted(1, 1)
    worker_metrics.retire("8")
    WorkerMetrics(tmp_path / "gone", "1").show(counted(1, 1))
