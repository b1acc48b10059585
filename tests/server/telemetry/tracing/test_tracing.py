"""Tests when traces are recorded, for which requests, and the effect of a reload."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.server.telemetry.tracing import export, open_tracing
from gateway.settings import Settings, TracingSettings, read_settings
from gateway.settings.reload_policy import keep_restart_only
from gateway.testing.gateway import gateway_command, hello
from tests.paths import ROOT
from tests.server.api.candidate_gateway import OVERLOADED, candidates_gateway, refuses, says
from tests.server.api.test_endpoint import well
from tests.server.backend import faulty_backend
from tests.server.conftest import Start, settings_for
from tests.server.telemetry.tracing.collector import CLIENT, SERVER, collector_running, told, traced_gateway

HERE: Final = TracingSettings()


def test_without_a_section_there_are_no_traces_whatever_the_environment_says() -> None:
    assert read_settings({}).tracing is None
    assert read_settings({"tracing": None}).tracing is None
    assert open_tracing(None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}) is None
    assert open_tracing(HERE, {"OTEL_SDK_DISABLED": " True"}) is None
    assert open_tracing(HERE, {}) is not None


@pytest.mark.parametrize("wrong", [{"sample": 1.1}, {"sample": -1}, {"sampel": 1}, {"endpoint": 3}, [], "on"])
def test_a_wrong_section_is_named(wrong: Json) -> None:
    with pytest.raises(SettingsError, match="tracing"):
        read_settings({"tracing": wrong})


BLOCKED: Final = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("opentelemetry.exporter"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Block())
from gateway.cli import main
from gateway.server.api.app import create_app
from gateway.settings import read_settings
create_app(read_settings({}))
print("made")
main(["serve", "--settings", sys.argv[1]])
"""


def test_without_the_package_only_a_section_is_an_error_of_one_line(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(msgspec.json.encode({**settings_for("http://127.0.0.1:1"), "tracing": {}}))
    command = [sys.executable, "-c", BLOCKED, str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (ran.returncode, ran.stdout) == (2, "made\n")
    said = 'tracing needs a package that is not installed: pip install "dragoman[otel]"'
    assert ran.stderr == f"dragoman: {file}: line 1: {said}\n"


async def test_without_a_section_nothing_is_added_for_the_backend(start: Start) -> None:
    gateway, backend = await start(well)
    gateway.client.headers["traceparent"] = f"00-{'1' * 32}-{'2' * 16}-01"
    assert (await gateway.chat()).status_code == 200
    assert gateway.app.gateway_state.tracing is None
    assert b"traceparent" not in backend.seen[0][0]


async def test_the_share_that_is_recorded_may_change_while_it_runs() -> None:
    async with (
        collector_running() as collector,
        traced_gateway(well, collector, {"sample": 0}) as (gateway, backend),
    ):
        gateway_state = gateway.app.gateway_state

        async def ask(name: str, **more: str) -> None:
            headers = {"x-request-id": name, **more}
            response = await gateway.client.post("/v1/chat/completions", json=hello(), headers=headers)
            assert response.status_code == 200

        await ask("none")
        await ask("wanted", traceparent=f"00-{'1' * 32}-{'2' * 16}-01")
        wanted = msgspec.structs.replace(gateway_state.settings, tracing=TracingSettings("http://other", sample=1))
        assert await gateway_state.change(wanted) == ("tracing",)
        await ask("all")
        assert all(b"traceparent: 00-" in head for head, _ in backend.seen)
    assert {told(span).get("dragoman.request_id") for span in collector.spans()} == {"wanted", "all", None}


@pytest.mark.parametrize(
    ("used", "wanted", "kept"),
    [
        (None, None, ()),
        (None, HERE, ("tracing",)),
        (HERE, None, ("tracing",)),
        (HERE, TracingSettings(service_name="x"), ("tracing",)),
        (HERE, TracingSettings(endpoint="http://x"), ("tracing",)),
    ],
)
def test_what_else_changes_needs_a_restart(
    used: TracingSettings | None, wanted: TracingSettings | None, kept: tuple[str, ...]
) -> None:
    result, names = keep_restart_only(Settings(tracing=used), Settings(tracing=wanted))
    assert (result.tracing, names) == (used, kept)


def test_the_share_needs_no_restart() -> None:
    result, names = keep_restart_only(Settings(tracing=HERE), Settings(tracing=TracingSettings(sample=0.5)))
    assert (result.tracing, names) == (TracingSettings(sample=0.5), ())


@pytest.mark.full
async def test_every_worker_exports_its_own_and_flushes_when_it_is_stopped(tmp_path: Path) -> None:
    async with collector_running() as collector, faulty_backend(well) as backend:
        settings: dict[str, Json] = {**settings_for(backend.base_url), "tracing": {"endpoint": collector.url}}
        async with gateway_command(tmp_path, settings, "serve", "--port", "0", "--workers", "2") as gateway:
            await gateway.wait_ready()

            async with httpx.AsyncClient(base_url=gateway.base_url, timeout=20) as client:
                asked = [client.post("/v1/chat/completions", json=hello()) for _ in range(24)]
                assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}
            gateway.process.terminate()
            status, errors = await gateway.ended()
        assert status == 0, errors
        spans = collector.spans()
        assert len({span.span_id for span in spans}) == len(spans) == 48
        assert len({span.trace_id for span in spans}) == 24
        instances = {bytes(one.resource.SerializeToString()) for one in collector.resources()}
        assert 1 <= len(instances) <= 2
        assert "traces" not in errors


async def test_each_try_of_a_request_has_a_span_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # More than a busy machine needs.
    monkeypatch.setattr(export, "CLOSE_S", 30)
    async with collector_running() as collector:
        plays = {"m": OVERLOADED, "n": refuses("429 Too Many Requests"), "o": says("hello")}
        tracing: Json = {"endpoint": collector.url}
        async with candidates_gateway(plays, tracing=tracing) as (gateway, backends):
            assert (await gateway.chat()).status_code == 200
            heads = [backend.seen[0][0] for backend in backends.values()]
    (server,) = [span for span in collector.spans() if span.kind == SERVER]
    tries = [span for span in collector.spans() if span.kind == CLIENT]
    assert [(span.name, told(span).get("http.response.status_code")) for span in tries] == [
        ("POST m", 503),
        ("POST n", 429),
        ("POST o", 200),
    ]
    assert [told(span).get("error.type") for span in tries] == ["upstream_overloaded", "rate_limit_exceeded", None]
    assert {span.parent_span_id for span in tries} == {server.span_id}
    for span, head in zip(tries, heads, strict=True):
        assert span.span_id.hex().encode() in head
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    assert "error.type" not in told(server)


async def test_where_all_tries_fail_each_has_its_span_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # More than a busy machine needs.
    monkeypatch.setattr(export, "CLOSE_S", 30)
    async with collector_running() as collector:
        tracing: Json = {"endpoint": collector.url}
        async with candidates_gateway({"m": OVERLOADED, "n": refuses("402 Pay")}, tracing=tracing) as (gateway, _):
            assert (await gateway.chat()).status_code == 503
    tries = [(span.name, told(span)["error.type"]) for span in collector.spans() if span.kind == CLIENT]
    assert tries == [("POST m", "upstream_overloaded"), ("POST n", "insufficient_quota")]
