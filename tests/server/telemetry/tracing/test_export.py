"""Collectors that are down, slow or wrong: spans are sent again or dropped, counted and reported, without any delay."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from gateway.server.telemetry.tracing import export
from gateway.server.telemetry.tracing.destination import destination_for
from gateway.server.telemetry.tracing.export import Exporter
from gateway.server.telemetry.tracing.span import Span
from gateway.settings import TracingSettings
from gateway.testing.gateway import RunningGateway
from tests.server.api.test_endpoint import well
from tests.server.backend import Connection, Script, answer
from tests.server.samples import missing
from tests.server.telemetry.tracing.collector import collector_running, taking, traced_gateway

NOWHERE: Final = "http://127.0.0.1:1/v1/traces"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "DELAY_S", 0.01)
    # A busy machine needs longer than the gateway waits.
    monkeypatch.setattr(export, "CLOSE_S", 30)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    with caplog.at_level(logging.INFO, "gateway"):
        # The libraries' own lines never reach our log.
        yield lambda: [
            f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == "gateway"
        ]


def span(name: str = "chat m", begun: int = 1) -> Span:
    return Span(1, 2, 0, False, name, "server", begun, 2, False, {})


@asynccontextmanager
async def exporting(url: str, **environ: str) -> AsyncIterator[Exporter]:
    exporter = Exporter(destination_for(TracingSettings(url), environ), str)
    try:
        yield exporter
    finally:
        await asyncio.to_thread(exporter.close)


async def settled(exporter: Exporter, spans: int) -> None:
    async with asyncio.timeout(5):
        while exporter.exported + exporter.dropped < spans:  # noqa: ASYNC110 (a thread sets no event of a loop)
            await asyncio.sleep(0.01)


def in_turn(*answers: bytes) -> Script:
    """The first answer to the first request, and so on; the last one to all others."""
    left = list(answers)

    async def script(connection: Connection) -> None:
        await connection.send(left.pop(0) if len(left) > 1 else left[0])

    return script


async def test_spans_are_sent_in_batches_as_protobuf_with_the_headers_of_the_environment() -> None:
    async with collector_running() as collector:
        async with exporting(collector.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=k") as exporter:
            for number in range(5):
                exporter.put((span(f"chat {number}"), span()))
        assert [one.name for one in collector.spans()][::2] == [f"chat {number}" for number in range(5)]
        assert (exporter.exported, exporter.dropped) == (10, 0)
        head = collector.backend.seen[0][0].lower()
        assert head.startswith(b"post /v1/traces http/1.1\r\n")
        assert b"content-type: application/x-protobuf\r\n" in head and b"x-key: k\r\n" in head


@pytest.mark.parametrize("passing", [b"429 Slow Down", b"502 Bad", b"503 Down", b"504 Late"])
async def test_a_fault_that_may_pass_is_tried_again(passing: bytes, lines: Callable[[], list[str]]) -> None:
    script = in_turn(answer(passing.decode(), b"", b"retry-after: 0"), answer("200 OK"))
    async with collector_running(script) as collector, exporting(collector.url) as exporter:
        exporter.put((span(),))
        await settled(exporter, 1)
        assert (len(collector.backend.seen), exporter.exported, exporter.dropped) == (2, 1, 0)
    assert lines() == []


async def test_a_fault_for_good_is_told_once_and_so_is_its_end(lines: Callable[[], list[str]]) -> None:
    moved = answer("302 Found", b"", b"location: /elsewhere")
    script = in_turn(answer("400 Bad"), answer("401 Who"), answer("404 Where"), moved, answer("200 OK"))
    async with collector_running(script) as collector, exporting(collector.url) as exporter:
        for number in range(1, 6):
            exporter.put((span(),))
            await settled(exporter, number)
        assert (len(collector.backend.seen), exporter.exported, exporter.dropped) == (5, 1, 4)
    first, second = lines()
    assert first == "WARNING traces cannot be exported (status 400); requests continue, and their spans are dropped"
    assert second == "INFO traces are exported again; 4 spans were dropped so far"


async def test_what_the_collector_rejects_is_counted() -> None:
    told = ExportTraceServiceResponse()
    told.partial_success.rejected_spans = 2
    script = in_turn(answer("200 OK", told.SerializeToString()), answer("200 OK", b"\xff no protobuf"))
    async with collector_running(script) as collector, exporting(collector.url) as exporter:
        exporter.put((span(),) * 3)
        await settled(exporter, 3)
        assert (exporter.exported, exporter.dropped) == (1, 2)
        exporter.put((span(),))
        await settled(exporter, 4)
        assert (exporter.exported, exporter.dropped) == (2, 2)


async def test_what_cannot_be_said_is_dropped_and_the_rest_goes_on() -> None:
    async with collector_running() as collector, exporting(collector.url) as exporter:
        exporter.put((span(begun=-1),))
        await settled(exporter, 1)
        exporter.put((span("\ud800"),))
        await settled(exporter, 2)
        assert (exporter.exported, exporter.dropped) == (1, 1)
        assert collector.spans()[0].name == "?"


async def test_secrets_are_taken_out_of_every_text() -> None:
    async with collector_running() as collector:
        destination = destination_for(TracingSettings(collector.url), {})
        exporter = Exporter(destination, lambda text: text.replace("secret", "x"))
        exporter.put((Span(1, 2, 0, False, "a secret", "server", 1, 2, False, {"k": "secret", "t": ("secret",)}),))
        await asyncio.to_thread(exporter.close)
        assert b"secret" not in collector.heard and b"a x" in collector.heard


async def silent(connection: Connection) -> None:
    await connection.gone()


async def test_a_full_queue_drops_and_the_end_does_not_wait(
    monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    monkeypatch.setattr(export, "QUEUE", 3)
    monkeypatch.setattr(export, "CLOSE_S", 0.5)
    # Far more than the bound below.
    monkeypatch.setattr(export, "TIMEOUT_S", 60)
    async with collector_running(silent) as collector:
        async with exporting(collector.url) as exporter:
            exporter.put((span(),))
            await asyncio.wait_for(collector.backend.requested.wait(), 30)
            for _ in range(5):
                exporter.put((span(), span()))
            assert (exporter.exported, exporter.dropped) == (0, 4)
            began = time.monotonic()
        assert 0.4 < time.monotonic() - began < 30
    assert lines()[-1] == "WARNING 7 spans were not exported before the end"


async def metrics_show(gateway: RunningGateway, *samples: str) -> None:
    async with asyncio.timeout(30):
        while missing((await gateway.client.get("/metrics")).text, *samples):  # noqa: ASYNC110 (a thread counts them)
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("kind", ["down", "slow", "500"])
async def test_a_collector_that_fails_neither_delays_nor_fails_a_request(
    kind: str, lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Less than the pause before another attempt; or, where the collector is slow, so long that the first request that
    # waited for it would exceed the bound below.
    monkeypatch.setattr(export, "TIMEOUT_S", 60 if kind == "slow" else 0.2)
    script = {"down": taking, "slow": silent, "500": in_turn(answer("500 Oh", b"x" * 100_000))}[kind]
    async with collector_running(script) as collector:
        if kind == "down":
            collector.url = NOWHERE
        async with traced_gateway(well, collector, close_s=0.5 if kind == "slow" else 30) as (gateway, _):
            began = time.monotonic()
            for _ in range(20):
                assert (await gateway.chat()).status_code == 200
            assert time.monotonic() - began < 30
            if kind != "slow":
                await metrics_show(gateway, "gateway_span_drops_total 40", "gateway_spans_total 0")
    assert sum(line.startswith("WARNING") for line in lines()) == 1


async def test_a_response_that_is_too_large_is_not_read(lines: Callable[[], list[str]]) -> None:
    told = ExportTraceServiceResponse()
    told.partial_success.rejected_spans = 1
    told.partial_success.error_message = "x" * 100_000
    script = in_turn(answer("200 OK", told.SerializeToString()))
    async with collector_running(script) as collector, exporting(collector.url) as exporter:
        exporter.put((span(),))
        await settled(exporter, 1)
        assert (exporter.exported, exporter.dropped) == (1, 0)
    assert lines() == []


async def test_nothing_of_the_environment_but_the_standard_variables_is_obeyed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a proxy nor a password file."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password word\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with collector_running() as collector, exporting(collector.url) as exporter:
        exporter.put((span(),))
        await settled(exporter, 1)
        assert exporter.exported == 1
        assert b"authorization" not in collector.heard.lower()
