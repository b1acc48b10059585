"""Tests several worker processes: one address, one log, one sum of metrics, and independent failures."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import GatewayCommand, gateway_command, hello
from tests.server.backend import END, HEAD, Connection, events, faulty_backend
from tests.server.conftest import settings_for
from tests.server.process.test_run import (
    brief,
    endless,
    held_until,
    read_stream,
    stream_while_stopping,
    until_refused,
)
from tests.server.samples import total


def children(process: GatewayCommand) -> list[int]:
    pid = process.process.pid
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def until(seen: Callable[[], bool], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not seen():  # noqa: ASYNC110 (other processes set no event)
            await asyncio.sleep(0.05)


async def sums(gateway: GatewayCommand, *series: str) -> list[float]:
    """The values of these series, each with at least these labels."""
    async with httpx.AsyncClient(headers=ALICE, timeout=40) as client:
        text = (await client.get(f"{gateway.base_url}/metrics")).text
    return [total(text, one) for one in series]


async def metrics_become(gateway: GatewayCommand, values: dict[str, int]) -> None:
    async with asyncio.timeout(30):
        while await sums(gateway, *values) != [*values.values()]:  # noqa: ASYNC110 (as above)
            await asyncio.sleep(0.05)


def crowd_before(gateway: GatewayCommand) -> httpx.AsyncClient:
    """Every request has a connection of its own, and so may come to any worker."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.AsyncClient(base_url=gateway.base_url, timeout=40, limits=limits)


UNREACHABLE = settings_for("http://127.0.0.1:1")
TWO = ("serve", "--port", "0", "--workers", "2")
CHAT = 'gateway_requests_total{route="chat"}'


@pytest.mark.full
async def test_every_worker_serves_and_any_of_them_tells_the_sums(tmp_path: Path) -> None:
    arguments = ("demo", "--port", "0", "--workers", "3")
    async with gateway_command(tmp_path, None, *arguments) as gateway:
        await gateway.wait_ready()
        assert gateway.printed.count("dragoman listens on") == 1
        async with crowd_before(gateway) as crowd:
            for _ in range(12):
                answer = await crowd.post("/v1/chat/completions", json=hello("demo-agent"))
                assert answer.status_code == 200
        await metrics_become(gateway, {CHAT: 12, "gateway_workers": 3})
        # Whoever watches sees one worker, and is told so.
        async with (
            httpx.AsyncClient(base_url=gateway.base_url, timeout=30) as client,
            client.stream("GET", "/v1/events") as feed,
        ):
            lines = feed.aiter_lines()
            assert await anext(lines) == "event: partial"
            said = json.loads((await anext(lines)).removeprefix("data: "))
        assert said["worker"] in (1, 2, 3) and said["workers"] == 3
        gateway.process.send_signal(signal.SIGTERM)
        status, errors = await gateway.ended()
    assert status == 0
    ids = re.findall(r"INFO (req_\w+) POST", errors)
    assert len(ids) == len(set(ids)) == 12


async def held(connection: Connection) -> None:
    """Streams without end if the request contains the word `hold`."""
    await (endless if b"hold" in connection.body else brief)(connection)


class Stream:
    """A stream of alice's. `refused`: it never began; `broken`: it was cut off in a way that no client can overlook."""

    def __init__(self, crowd: httpx.AsyncClient) -> None:
        self.began = asyncio.Event()
        self.refused = self.broken = False
        self.text = ""
        self.task = asyncio.create_task(self._read(crowd))

    async def _read(self, crowd: httpx.AsyncClient) -> None:
        request = {**hello(), "messages": [{"role": "user", "content": "hold"}], "stream": True}
        async with crowd.stream("POST", "/v1/chat/completions", json=request, headers=ALICE) as response:
            self.refused = response.status_code == 429
            try:
                async for text in response.aiter_text():
                    self.text += text
                    self.began.set()
            except (httpx.RemoteProtocolError, httpx.ReadError):
                self.broken = True

    async def known(self) -> bool:
        """Whether it was let in."""
        await self.began.wait()
        return not self.refused


async def let_in(crowd: httpx.AsyncClient, number: int) -> list[Stream]:
    """Those of so many streams that are not refused."""
    streams = [Stream(crowd) for _ in range(number)]
    return [stream for stream in streams if await stream.known()]


async def kill(gateway: GatewayCommand) -> None:
    """Kills a worker, and sends SIGHUP to its successor before that can handle it."""
    before = children(gateway)
    os.kill(before[0], signal.SIGKILL)
    async with asyncio.timeout(30):
        while not (new := set(children(gateway)) - set(before)):  # noqa: ASYNC110 (other processes set no event)
            await asyncio.sleep(0.002)
    os.kill(new.pop(), signal.SIGHUP)


STORE_FAILURES = [
    f'gateway_state_operations_total{{outcome="{failure}"}}' for failure in ("slow", "down", "full", "invalid")
]
ALICE = {"authorization": "Bearer a"}
BOB = {"authorization": "Bearer b"}


@pytest.mark.full
async def test_limits_of_keys_hold_for_all_workers_through_a_reload_and_kill_9_of_a_worker(tmp_path: Path) -> None:
    """A worker that is killed breaks its streams, and gives their places back; the others go on."""
    (tmp_path / "keys").write_text("alice:a\nbob:b\n")
    async with faulty_backend(held) as backend:
        base = settings_for(
            backend.base_url, api_keys_file=str(tmp_path / "keys"), reload=False, graceful_shutdown_timeout_s=0.1
        )
        keys: dict[str, Json] = {"alice": {"concurrent_streams": 3}, "bob": {"requests_per_minute": 4}}
        # The limits are exact as long as the store is in time, also on a busy machine.
        settings: dict[str, Json] = {**base, "keys": keys, "state": {"deadline_ms": 5000}}
        async with gateway_command(tmp_path, settings, *TWO) as gateway, AsyncExitStack() as stack:
            await gateway.wait_ready()
            crowd = await stack.enter_async_context(crowd_before(gateway))
            await until(lambda: len(children(gateway)) == 2)
            asked = [await crowd.post("/v1/chat/completions", json=hello(), headers=BOB) for _ in range(8)]
            assert [response.status_code for response in asked] == [200] * 4 + [429] * 4

            streams = await let_in(crowd, 8)
            assert len(streams) == 3
            keys["alice"] = {"concurrent_streams": 5}
            (tmp_path / "settings.json").write_text(json.dumps(settings))
            gateway.process.send_signal(signal.SIGHUP)
            # It is counted once, and the other worker may read the file later.
            await metrics_become(gateway, {"gateway_config_reloads_total": 1})
            async with asyncio.timeout(20):
                while len(streams) < 5:
                    streams += await let_in(crowd, 6)
            assert len(streams) == 5

            killed = 0
            while not any(stream.broken for stream in streams):
                await kill(gateway)
                killed += 1
                await metrics_become(gateway, {"gateway_workers": 2, "gateway_worker_restarts_total": killed})
            broken = [stream for stream in streams if stream.broken]
            assert not any("[DONE]" in stream.text or "error" in stream.text for stream in broken)
            assert len(await let_in(crowd, 8)) == len(broken)
            # The others serve all the while.
            told = [(stream, len(stream.text)) for stream in streams if stream not in broken]
            await until(lambda: all(len(stream.text) > before for stream, before in told))
            assert not any(stream.task.done() for stream, _ in told)
            await metrics_become(gateway, {"gateway_open_streams": 5, **dict.fromkeys(STORE_FAILURES, 0)})
            gateway.process.send_signal(signal.SIGTERM)
            _, errors = await gateway.ended()
    assert re.search(r"ERROR - worker [12] ended by signal 9; it restarts in 0\.\d s", errors)


@pytest.mark.parametrize("group", [False, pytest.param(True, marks=pytest.mark.full)])
async def test_a_stop_lets_streams_finish(tmp_path: Path, group: bool) -> None:
    """Also when a service manager sends the signal to every process."""
    refused = asyncio.Event()
    async with faulty_backend(held_until(refused)) as backend:
        settings = settings_for(backend.base_url, graceful_shutdown_timeout_s=60)
        async with gateway_command(tmp_path, settings, *TWO) as gateway:
            await gateway.wait_ready()
            if group:
                await until(lambda: len(children(gateway)) == 2)
                stream = asyncio.create_task(read_stream(gateway))
                await backend.requested.wait()
                for pid in children(gateway):
                    os.kill(pid, signal.SIGTERM)
                gateway.process.send_signal(signal.SIGTERM)
                await until_refused(gateway)
                refused.set()
                text = await stream
            else:
                text = await stream_while_stopping(gateway, refused)
            status, _ = await gateway.ended()
    assert text.endswith("data: [DONE]\n\n")
    assert status == 0


@pytest.mark.full
async def test_a_second_signal_stops_all_at_once(tmp_path: Path) -> None:
    async with faulty_backend(endless) as backend:
        settings = settings_for(backend.base_url, graceful_shutdown_timeout_s=60)
        async with gateway_command(tmp_path, settings, *TWO) as gateway:
            await gateway.wait_ready()
            asking = asyncio.create_task(read_stream(gateway))
            await backend.requested.wait()
            gateway.process.send_signal(signal.SIGINT)
            await until_refused(gateway)
            assert len(children(gateway)) >= 1
            gateway.process.send_signal(signal.SIGINT)
            # Far below the time that the first signal leaves to streams.
            async with asyncio.timeout(30):
                status, _ = await gateway.ended()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    assert status == 0


@pytest.mark.full
async def test_kill_9_of_the_supervisor_ends_the_workers_and_leaves_nothing(tmp_path: Path) -> None:
    """No process, no listening socket and no folder is left."""
    (tmp_path / "temporary").mkdir()
    async with gateway_command(tmp_path, UNREACHABLE, *TWO, TMPDIR=str(tmp_path / "temporary")) as gateway:
        await gateway.wait_ready()
        await until(lambda: len(children(gateway)) == 2)
        workers = children(gateway)
        assert [path.name[:13] for path in (tmp_path / "temporary").iterdir()] == ["dragoman-run-"]
        gateway.process.kill()
        await until(lambda: not any(alive(pid) for pid in workers))
        assert list((tmp_path / "temporary").iterdir()) == []
        async with httpx.AsyncClient(timeout=30) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{gateway.base_url}/healthz")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.full
async def test_a_reload_reaches_every_worker(tmp_path: Path) -> None:
    async def well(connection: Connection) -> None:
        await connection.send(HEAD, events("text x", "finish"), END)

    async with faulty_backend(well) as backend:
        settings = settings_for(backend.base_url, reload=False)
        async with gateway_command(tmp_path, settings, *TWO) as gateway:
            await gateway.wait_ready()
            await metrics_become(gateway, {"gateway_workers": 2})
            (tmp_path / "settings.json").write_text(json.dumps({**settings, "models": {"new": {"backend": "plain"}}}))
            gateway.process.send_signal(signal.SIGHUP)
            await metrics_become(gateway, {"gateway_config_reloads_total": 1})
            async with asyncio.timeout(20):
                while await answers(gateway, "new") != {200}:
                    pass
            before = children(gateway)
            for pid in before:
                os.kill(pid, signal.SIGKILL)
            # Their successors begin with the file as it is by now.
            await until(lambda: len(set(children(gateway)) - set(before)) == 2)
            await metrics_become(gateway, {"gateway_workers": 2, "gateway_worker_restarts_total": 2})
            assert await answers(gateway, "new") == {200}
            gateway.process.send_signal(signal.SIGTERM)
            await gateway.ended()


async def answers(gateway: GatewayCommand, model: str) -> set[int]:
    found: set[int] = set()
    async with crowd_before(gateway) as crowd:
        for _ in range(8):
            found.add((await crowd.post("/v1/chat/completions", json=hello(model))).status_code)
    return found


ONCE = """
from pathlib import Path
from tests.server.plain import PlainAdapter

class OnceAdapter(PlainAdapter):
    def __init__(self, options, max_event):
        if Path("seen").exists():
            raise SystemExit(3)
        Path("seen").touch()
"""


@pytest.mark.full
async def test_a_worker_that_cannot_begin_ends_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text(ONCE)
    settings: dict[str, Json] = {
        "log": {"file": None},
        "backends": {"b": {"adapter": "once:OnceAdapter", "base_url": "http://127.0.0.1:1"}},
    }
    async with gateway_command(tmp_path, settings, *TWO) as gateway:
        status, errors = await gateway.ended()
    assert status == 2
    assert "ended with status 3 before it was ready" in errors
    assert errors.endswith("dragoman: the gateway could not start; its log states the cause\n")


@pytest.mark.full
async def test_a_worker_is_restarted_while_the_log_file_has_no_room(tmp_path: Path) -> None:
    settings: dict[str, Json] = {**UNREACHABLE, "log": {"file": "/dev/full"}}
    async with gateway_command(tmp_path, settings, *TWO) as gateway:
        await gateway.wait_ready()
        await metrics_become(gateway, {"gateway_workers": 2})
        lost, kept = children(gateway)
        os.kill(lost, signal.SIGKILL)
        await until(lambda: len(set(children(gateway)) - {lost, kept}) == 1)
        await metrics_become(gateway, {"gateway_workers": 2})
        gateway.process.send_signal(signal.SIGTERM)
        status, errors = await gateway.ended()
    assert status == 0
    assert "ended by signal 9" in errors
    assert "Traceback" not in errors and "ended with status" not in errors


async def test_a_wrong_number_of_workers_is_one_line(tmp_path: Path) -> None:
    for number, said in (("x", "the number of workers must be"), ("0", "server.workers")):
        async with gateway_command(tmp_path, {}, "serve", "--workers", number) as gateway:
            status, errors = await gateway.ended()
        assert status == 2
        assert said in errors and errors.count("\n") == 1
