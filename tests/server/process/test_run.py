"""Tests the process from an operator's view: start, signals, exit status, output and log."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
from pathlib import Path
from typing import Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.server.access.api_keys import ANONYMOUS
from gateway.server.api.gateway_state import GatewayState
from gateway.server.process.run import LoopExceptionHandler
from gateway.server.state.process_identity import process_identity
from gateway.server.state.sqlite import SqliteLimits
from gateway.settings import KeySettings, parse_settings
from gateway.testing.gateway import GatewayCommand, gateway_command, hello, python_process, running_gateway
from tests.server.backend import END, HEAD, Connection, Script, events, faulty_backend
from tests.server.conftest import settings_for
from tests.server.samples import total
from tests.server.state.sqlite.files import replace
from tests.tiers import sample


async def endless(connection: Connection) -> None:
    await connection.send(HEAD, events("text one"))
    while True:
        await asyncio.sleep(0.05)
        await connection.send(events("text more"))


async def brief(connection: Connection) -> None:
    await connection.send(HEAD, events("text one"), events("text two", "finish"), END)


def held_until(until: asyncio.Event) -> Script:
    """An answer that ends only after the event."""

    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("text one"))
        await until.wait()
        await connection.send(events("text two", "finish"))

    return script


async def test_a_stop_lets_streams_finish(tmp_path: Path) -> None:
    refused = asyncio.Event()
    async with faulty_backend(held_until(refused)) as backend:
        settings = settings_for(backend.base_url, graceful_shutdown_timeout_s=60)
        async with gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway:
            await gateway.wait_ready()
            text = await stream_while_stopping(gateway, refused)
            status, _ = await gateway.ended()
    assert text.endswith("data: [DONE]\n\n")
    assert status == 0


async def test_a_stop_ends_what_takes_too_long_with_an_error_frame(tmp_path: Path) -> None:
    async with faulty_backend(endless) as backend:
        settings = settings_for(backend.base_url, graceful_shutdown_timeout_s=0.4)
        async with gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway:
            await gateway.wait_ready()
            text = await stream_while_stopping(gateway, asyncio.Event())
            status, _ = await gateway.ended()
        async with asyncio.timeout(5):
            await backend.closed.wait()
    last = text.rstrip().rpartition("\n\n")[2]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "server_shutdown"
    assert "[DONE]" not in text
    assert status == 0


@pytest.mark.full
async def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    async with faulty_backend(endless) as backend:
        settings = settings_for(backend.base_url, graceful_shutdown_timeout_s=60)
        async with gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway:
            await gateway.wait_ready()
            asking = asyncio.create_task(read_stream(gateway))
            await backend.requested.wait()
            gateway.process.send_signal(signal.SIGTERM)
            await until_refused(gateway)
            gateway.process.send_signal(signal.SIGTERM)
            # Far below the time that the first signal leaves to streams.
            async with asyncio.timeout(30):
                status, _ = await gateway.ended()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    assert status == 0


async def read_stream(gateway: GatewayCommand) -> str:
    async with httpx.AsyncClient(timeout=40) as client:
        request = {**hello(), "stream": True}
        return (await client.post(f"{gateway.base_url}/v1/chat/completions", json=request)).text


async def stream_while_stopping(gateway: GatewayCommand, refused: asyncio.Event) -> str:
    """Returns the text of a stream during which SIGTERM is sent. Sets `refused` as soon as new requests are refused."""
    async with httpx.AsyncClient(timeout=40) as client:
        request = {**hello(), "stream": True}
        async with client.stream("POST", f"{gateway.base_url}/v1/chat/completions", json=request) as response:
            pieces = response.aiter_text()
            text = await anext(pieces)
            gateway.process.send_signal(signal.SIGTERM)
            await until_refused(gateway)
            refused.set()
            return text + "".join([piece async for piece in pieces])


async def until_refused(gateway: GatewayCommand) -> None:
    """Wait until the process takes no new requests."""
    async with asyncio.timeout(20):
        with contextlib.suppress(httpx.TransportError):
            while True:
                async with httpx.AsyncClient(timeout=30) as client:
                    if (await client.get(f"{gateway.base_url}/readyz")).status_code == 503:
                        return
                await asyncio.sleep(0.02)


@pytest.mark.full
async def test_a_watched_feed_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    async with gateway_command(
        tmp_path, settings_for("http://127.0.0.1:1", graceful_shutdown_timeout_s=60), "serve", "--port", "0"
    ) as gateway:
        await gateway.wait_ready()
        async with (
            httpx.AsyncClient(base_url=gateway.base_url, timeout=30) as client,
            client.stream("GET", "/v1/events") as feed,
        ):
            gateway.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(40):
                await feed.aread()
                status, _ = await gateway.ended()
    assert status == 0


async def test_the_printed_command_works_as_it_is_printed(tmp_path: Path) -> None:
    keys = "first,second"
    async with gateway_command(tmp_path, None, "demo", "--port", "0", DRAGOMAN_API_KEYS=keys) as gateway:
        await gateway.wait_ready()
        command = gateway.printed.partition("Try it:\n")[2].strip()
        shell = await asyncio.create_subprocess_shell(
            command, env={**os.environ, "DRAGOMAN_API_KEYS": keys}, stdout=asyncio.subprocess.PIPE
        )
        answered, _ = await shell.communicate()
        assert json.loads(answered)["choices"][0]["message"]["content"]
        gateway.process.send_signal(signal.SIGINT)
        status, _ = await gateway.ended()
    assert status == 0
    assert not (tmp_path / "logs").exists()


@pytest.mark.full
@pytest.mark.parametrize("keys", ["", "first,second"])
async def test_what_the_demo_backends_were_asked_is_shown_at_the_address_that_is_printed(
    tmp_path: Path, keys: str
) -> None:
    async with gateway_command(tmp_path, None, "demo", "--port", "0", DRAGOMAN_API_KEYS=keys) as gateway:
        await gateway.wait_ready()
        assert gateway.process.stdout is not None
        said = await gateway.process.stdout.readline()
        show = (await gateway.process.stdout.readline()).decode().strip()
        assert said == b"Requests that the demo backends received:\n"
        for command in (gateway.printed.partition("Try it:\n")[2].strip(), show):
            assert gateway.base_url in command
            shell = await asyncio.create_subprocess_shell(
                command, env={**os.environ, "DRAGOMAN_API_KEYS": keys}, stdout=asyncio.subprocess.PIPE
            )
            told, _ = await shell.communicate()
    shown = json.loads(told)
    assert set(shown) == {"agent", "chat", "messages", "responses", "gemini", "text", "grpc"}
    (request,) = shown["agent"]["requests"]
    assert "Hello" in json.dumps(request["summary"])
    assert "first" not in told.decode()


async def test_the_log_file_tells_every_request_and_no_content(tmp_path: Path) -> None:
    async with faulty_backend(brief) as backend:
        settings: dict[str, Json] = {**settings_for(backend.base_url), "log": {"level": "debug"}}
        async with gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway:
            await gateway.wait_ready()
            async with httpx.AsyncClient(base_url=gateway.base_url, timeout=30) as client:
                request = {**hello(), "messages": [{"role": "user", "content": "a secret word"}]}
                headers = {"x-request-id": "my-id"}
                await client.post("/v1/chat/completions", json=request, headers=headers)
                await client.post("/v1/chat/completions", json=hello("x\nERROR forged"))
            gateway.process.send_signal(signal.SIGTERM)
            _, errors = await gateway.ended()
    logged = (tmp_path / "logs" / "gateway.log").read_text()
    assert logged == errors
    lines = logged.splitlines()
    begin = next(at for at, line in enumerate(lines) if "[Plain Request]" in line)
    assert lines[begin - 1].endswith("=" * 60)
    assert lines[begin].startswith("20") and " DEBUG my-id " in lines[begin]
    assert lines[begin + 1].endswith("  Tool results: 0")
    assert lines[begin + 2].endswith("  History messages: 0")
    assert "secret" not in logged
    access = [line for line in lines if "POST /v1/chat/completions" in line]
    assert "model=m backend=plain status=200" in access[0]
    assert "status=404 code=model_not_found" in access[1]
    assert not any(line.startswith("ERROR") for line in lines)


@sample(lambda arguments: bool(arguments))
@pytest.mark.parametrize(
    ("settings", "arguments", "said"),
    [
        ({"prot": 1}, (), "unknown setting 'prot'"),
        ({"server": {"host": "0.0.0.0"}}, (), "without client keys would accept every client"),
        ({}, ("--port", "x"), "the port must be a number"),
        ({}, ("--port", "70000"), "server.port"),
        ({}, ("--settings", "none.json"), "none.json: there is no such file; "),
        (
            {"backends": {"a": {"adapter": "nowhere:X", "base_url": "http://x"}}},
            (),
            "settings.json: line 1: backends.a.adapter: 'nowhere:X' cannot be imported",
        ),
        (
            {"backends": {"a": {"adapter": "text", "base_url": "http://x", "wire": {"base": "plain", "reqest": {}}}}},
            (),
            "settings.json: line 1: unknown setting 'backends.a.wire.reqest'; did you mean 'request'?",
        ),
    ],
)
async def test_a_wrong_setting_is_one_line_and_status_2(
    tmp_path: Path, settings: dict[str, Json], arguments: tuple[str, ...], said: str
) -> None:
    async with gateway_command(tmp_path, settings, "serve", *arguments) as gateway:
        status, errors = await gateway.ended()
    assert status == 2
    assert said in errors
    assert errors.startswith("dragoman: ") and errors.count("\n") == 1


@pytest.mark.full
async def test_the_log_names_the_limits_of_each_model_once_at_the_start(tmp_path: Path) -> None:
    native: Json = {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", "base_url": "http://127.0.0.1:1"}
    settings: dict[str, Json] = {
        "server": {"port": 0, "workers": 2},
        "log": {"file": None},
        "backends": {
            "n": native,
            "t": {"adapter": "adapters.text.backend:TextAdapter", "base_url": "http://127.0.0.1:1"},
        },
        "models": {
            "one": {"backend": "n"},
            "two": {"backend": "t"},
            "three": {"backend": "t", "context_length": 9, "max_history": 8, "compress": {"enabled": True}},
        },
    }
    async with gateway_command(tmp_path, settings, "serve") as gateway:
        await gateway.wait_ready()
        gateway.process.send_signal(signal.SIGTERM)
        _, log = await gateway.ended()
    said = (
        "one: none; two: max_tool_results=10 max_history_messages=50 trim_step=10; "
        "three: max_history_messages=8 trim_step=10"
    )
    assert log.count("WARNING - models.three: max_history_messages is 8, which removes turns before a summary") == 1
    assert log.count(f"limits of each model's history: {said}") == 1
    assert "no models" not in log


async def test_settings_without_models_are_warned_of_at_the_start(tmp_path: Path) -> None:
    settings: dict[str, Json] = {"server": {"port": 0}, "log": {"file": None}}
    async with gateway_command(tmp_path, settings, "serve", stderr=asyncio.subprocess.STDOUT) as gateway:
        assert gateway.process.stdout is not None
        async with asyncio.timeout(40):
            while b"no models" not in (line := await gateway.process.stdout.readline()):
                assert line
    assert b" WARNING " in line and b"docs/settings.md" in line
    assert b"limits of each" not in line


async def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        async with gateway_command(tmp_path, {}, "serve", DRAGOMAN_PORT=port) as gateway:
            status, errors = await gateway.ended()
    assert status == 2
    assert errors == (
        f"dragoman: cannot listen on 127.0.0.1:{port}: Address already in use. "
        "What listens there is an unknown server. Choose another port with --port or server.port\n"
    )


@pytest.mark.full
async def test_what_answers_at_a_port_in_use_is_named(tmp_path: Path) -> None:
    async with (
        running_gateway({}) as other,
        gateway_command(tmp_path, {}, "serve", DRAGOMAN_PORT=str(other.port)) as gateway,
    ):
        status, errors = await gateway.ended()
    assert status == 2
    assert f":{other.port}: Address already in use. What listens there is another Dragoman. " in errors


@pytest.mark.full
async def test_limits_are_shared_through_a_named_store_and_its_failure_refuses_nobody(tmp_path: Path) -> None:
    """Also by a single worker: here with the process of the test."""
    file = tmp_path / "made" / "state.db"
    limits = KeySettings(concurrent_streams=1)
    other = SqliteLimits(file, process_identity(os.getpid()))
    assert (await other.take(ANONYMOUS, limits, 0, 1)).admitted == 1
    async with faulty_backend(brief) as backend:
        settings: dict[str, Json] = {
            **settings_for(backend.base_url),
            "keys": {"*": {"concurrent_streams": 1}},
            "state": {"store": f"sqlite:{file}", "deadline_ms": 5000},
        }
        async with (
            gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway,
            httpx.AsyncClient(timeout=20) as client,
            asyncio.timeout(20),
        ):
            await gateway.wait_ready()
            url = f"{gateway.base_url}/v1/chat/completions"
            refused = await client.post(url, json=hello())
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
            replace(file)
            assert [(await client.post(url, json=hello())).status_code for _ in range(2)] == [200, 200]
            metrics = (await client.get(f"{gateway.base_url}/metrics")).text
            assert total(metrics, 'gateway_state_operations_total{op="take",outcome="down"}') >= 1
            gateway.process.send_signal(signal.SIGTERM)
            status, errors = await gateway.ended()
    await other.aclose()
    assert status == 0
    told = (
        f"the file is not a store of this version (sqlite:{file}); each worker counts the limits of API keys by itself"
    )
    assert errors.count(told) == 1


def test_a_file_of_another_program_is_no_store(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("mine\n" * 100)
    with pytest.raises(SettingsError, match="is not a store of this version"):
        GatewayState(parse_settings(json.dumps({"state": {"store": f"sqlite:{file}"}})))


async def test_what_nobody_caught_is_told_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(LoopExceptionHandler())

    def fail() -> None:
        raise RuntimeError("a bug")

    with caplog.at_level(logging.ERROR, "gateway"):
        for _ in range(100):
            loop.call_soon(fail)
        await asyncio.sleep(0.01)
    (record,) = caplog.records
    assert "exception in the event loop (1 since the last such line): Exception in callback" in record.getMessage()
    assert record.exc_info is not None and str(record.exc_info[1]) == "a bug"


async def test_what_came_without_an_exception_is_told_as_well(caplog: pytest.LogCaptureFixture) -> None:
    LoopExceptionHandler()(asyncio.get_running_loop(), {"message": "odd"})
    assert [record.getMessage() for record in caplog.records] == [
        "exception in the event loop (1 since the last such line): odd"
    ]


# Serves, and says of the process that reports the start whether garbage is collected before that and then.
COLLECTS: Final = """
import gc, sys
from gateway.cli import main
from gateway.server.process import run

bind, log_start = run._bind, run.log_start

def binding(*args):
    print("binds", gc.isenabled(), flush=True)
    return bind(*args)

def started(*args):
    print("started", gc.isenabled(), flush=True)
    log_start(*args)

run._bind, run.log_start = binding, started
main(["serve", "--settings", sys.argv[1], "--workers", sys.argv[2]])
"""


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_garbage_is_collected_from_the_end_of_the_start_on(workers: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(settings_for("http://127.0.0.1:1", port=0)))
    async with python_process(tmp_path, "-c", COLLECTS, "settings.json", workers) as process:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"binds False\n"
            assert await process.stdout.readline() == b"started True\n"
