"""Tests the log lines about start, reload and stop: one per event, for any number of workers."""

import asyncio
import json
import re
import signal
from pathlib import Path
from typing import Final

import pytest

from gateway.server.access.api_keys import load_keys
from gateway.server.upstream.transport import gateway_version
from gateway.settings import ServerSettings
from gateway.testing.gateway import GatewayCommand, gateway_command
from tests.server.backend import HEAD, Connection, events, faulty_backend
from tests.server.conftest import settings_for
from tests.server.process.test_run import endless, read_stream, until_refused
from tests.server.process.test_workers import children, metrics_become, until
from tests.tiers import sample

WORKERS: Final = ("1", "2")


async def ready(gateway: GatewayCommand, workers: str) -> None:
    await gateway.wait_ready()
    if workers != "1":
        await until(lambda: len(children(gateway)) == int(workers))
        await metrics_become(gateway, {"gateway_workers": int(workers)})


def lines(log: str, word: str) -> list[str]:
    """What stands behind the request id in the lines that begin with this word."""
    return re.findall(rf"^\S+ (?:INFO|WARNING|ERROR) - ({word}.*)$", log, re.M)


@sample(lambda workers: 1)
@pytest.mark.parametrize("workers", WORKERS)
async def test_a_start_a_reload_and_a_stop_are_one_line_each(tmp_path: Path, workers: str) -> None:
    keys = tmp_path / "keys"
    keys.write_text("alice:a\n")
    settings = settings_for("http://127.0.0.1:1", api_keys_file=str(keys), reload=False, graceful_shutdown_timeout_s=7)
    settings["log"] = {}
    async with gateway_command(tmp_path, settings, "serve", "--port", "0", "--workers", workers) as gateway:
        await ready(gateway, workers)
        keys.write_text("alice:a\nbob:b\n")
        gateway.process.send_signal(signal.SIGHUP)
        await metrics_become(gateway, {"gateway_config_reloads_total": 1})
        (tmp_path / "settings.json").write_text("{")
        gateway.process.send_signal(signal.SIGHUP)
        await metrics_become(gateway, {"gateway_config_reload_failures_total": 1})
        gateway.process.send_signal(signal.SIGTERM)
        status, errors = await gateway.ended()
    assert status == 0
    assert (tmp_path / "logs" / "gateway.log").read_text() == errors
    (start,) = lines(errors, "started")
    assert start == (
        f"started version={gateway_version()} settings=settings.json address={gateway.base_url} workers={workers} "
        "models='m, n'"
    )
    assert lines(errors, "settings reloaded") == ["settings reloaded; changed: client keys (added: bob)"]
    assert len(lines(errors, "settings not reloaded")) == 1
    assert lines(errors, "stop") == [
        "stopping signal=SIGTERM graceful_shutdown_timeout_s=7; a second signal stops at once",
        "stopped",
    ]
    # The first start on a machine makes a key.
    said = [line for line in errors.splitlines() if "made a key" not in line]
    assert said[0].endswith(start) and said[-1].endswith(" stopped")


@pytest.mark.full
@pytest.mark.parametrize("workers", WORKERS)
async def test_a_second_signal_in_the_midst_of_a_stream_is_told_as_what_it_is(tmp_path: Path, workers: str) -> None:
    async with faulty_backend(endless) as backend:
        settings = settings_for(backend.base_url, graceful_shutdown_timeout_s=60)
        async with gateway_command(tmp_path, settings, "serve", "--port", "0", "--workers", workers) as gateway:
            await ready(gateway, workers)
            reading = asyncio.create_task(read_stream(gateway))
            await backend.requested.wait()
            gateway.process.send_signal(signal.SIGTERM)
            await until_refused(gateway)
            gateway.process.send_signal(signal.SIGTERM)
            status, errors = await gateway.ended()
            text = await reading
    assert status == 0
    assert "Traceback" not in errors and "application" not in errors and " ERROR " not in errors
    (access,) = re.findall(r"POST /v1/chat/completions .*", errors)
    assert "status=200 code=server_shutdown" in access
    assert "upstream_failure" not in errors
    last = text.rstrip().rpartition("\n\n")[2]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "server_shutdown"
    assert lines(errors, "stopping")[1:] == ["stopping at once signal=SIGTERM"]


@pytest.mark.full
async def test_a_client_that_takes_nothing_does_not_hold_up_a_second_signal(tmp_path: Path) -> None:
    """It cannot receive an error, but its access line has the same fields as any other."""

    async def flood(connection: Connection) -> None:
        await connection.send(HEAD)
        while True:
            await connection.send(events("text " + "x" * 60_000))

    async with faulty_backend(flood) as backend:
        settings = settings_for(backend.base_url, graceful_shutdown_timeout_s=60)
        async with gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway:
            await gateway.wait_ready()
            host, _, port = gateway.base_url.removeprefix("http://").rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port), limit=1000)
            body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            await reader.readexactly(1000)
            gateway.process.send_signal(signal.SIGTERM)
            await until_refused(gateway)
            gateway.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(10):
                status, errors = await gateway.ended()
            writer.close()
    assert status == 0
    assert "Traceback" not in errors and "application" not in errors
    (access,) = re.findall(r"POST /v1/chat/completions .*", errors)
    assert "status=200 code=server_shutdown" in access


def test_the_changes_of_client_keys_are_named(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    server = ServerSettings(api_keys_file=str(file))

    file.write_text("alice:a\nbob:b\nci:c\n")
    before = load_keys(server, {})
    file.write_text("alice:a\nbob:other\ndora:d\nalice:second\n")
    after = load_keys(server, {})
    assert after.changes_from(before) == "added: dora; removed: ci; changed: alice, bob"
    assert before.changes_from(before) == ""
