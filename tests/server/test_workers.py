"""Several worker processes: one address, one log, one sum of metrics, and nobody takes the others along."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from gateway.types import Json
from tests.server.backend import END, HEAD, Connection, events, faulty_backend
from tests.server.conftest import settings_for
from tests.server.running import hello
from tests.server.test_run import Process, brief, endless, patient, read_stream, started, stream_while_stopping


def children(process: Process) -> list[int]:
    pid = process.process.pid
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def until(seen: Callable[[], bool], seconds: float = 8) -> None:
    async with asyncio.timeout(seconds):
        while not seen():  # noqa: ASYNC110 (other processes set no event)
            await asyncio.sleep(0.05)


async def sums(gateway: Process, *names: str) -> list[int]:
    """The values of metrics with these beginnings."""
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{gateway.base_url}/metrics")).text
    return [sum(int(found) for found in re.findall(rf"^{re.escape(name)}\S* (\d+)$", text, re.M)) for name in names]


UNREACHABLE = settings_for("http://127.0.0.1:1")
TWO = ("serve", "--port", "0", "--workers", "2")
CHAT = 'gateway_requests_total{route="chat"'


async def test_every_worker_serves_and_any_of_them_tells_the_sums(tmp_path: Path) -> None:
    arguments = ("demo", "--port", "0", "--workers", "3")
    async with started(tmp_path, None, *arguments) as gateway:
        await gateway.wait_ready()
        assert gateway.printed.count("dragoman listens on") == 1
        for _ in range(12):
            async with httpx.AsyncClient() as client:
                answer = await client.post(f"{gateway.base_url}/v1/chat/completions", json=hello("demo-agent"))
            assert answer.status_code == 200
        await asyncio.sleep(1.2)
        assert await sums(gateway, CHAT, "gateway_workers") == [12, 3]
        gateway.process.send_signal(signal.SIGTERM)
        status, errors = await gateway.ended()
    assert status == 0
    ids = re.findall(r"INFO (req_\w+) POST", errors)
    assert len(ids) == len(set(ids)) == 12


async def test_a_worker_that_dies_is_replaced_and_what_it_counted_stays(tmp_path: Path) -> None:
    async with started(tmp_path, UNREACHABLE, *TWO) as gateway:
        await gateway.wait_ready()
        await until(lambda: len(children(gateway)) == 2)
        await asyncio.sleep(0.5)
        before = children(gateway)
        for _ in range(4):
            async with httpx.AsyncClient() as client:
                await client.get(f"{gateway.base_url}/healthz")
        await asyncio.sleep(1.2)
        os.kill(before[0], signal.SIGKILL)
        # The other one serves all the while.
        for _ in range(5):
            async with httpx.AsyncClient() as client:
                assert (await client.get(f"{gateway.base_url}/readyz")).status_code == 200
        await until(lambda: len(children(gateway)) == 2 and before[0] not in children(gateway))
        await asyncio.sleep(1.5)
        workers, restarts, served = await sums(
            gateway, "gateway_workers", "gateway_worker_restarts_total", 'gateway_requests_total{route="other"'
        )
        assert (workers, restarts) == (2, 1)
        assert served >= 9
        gateway.process.send_signal(signal.SIGTERM)
        status, errors = await gateway.ended()
    assert status == 0
    assert re.search(r"ERROR - worker [12] ended by signal 9; it is started again in 0\.\d s", errors)


@pytest.mark.parametrize("group", [False, True])
async def test_a_stop_lets_streams_finish(tmp_path: Path, group: bool) -> None:
    """Also when a service manager sends the signal to every process."""
    async with faulty_backend(brief) as backend:
        settings = patient(backend.base_url, drain_s=5)
        async with started(tmp_path, settings, *TWO) as gateway:
            await gateway.wait_ready()
            if group:
                await until(lambda: len(children(gateway)) == 2)
                stream = asyncio.create_task(read_stream(gateway))
                await backend.asked.wait()
                for pid in children(gateway):
                    os.kill(pid, signal.SIGTERM)
                gateway.process.send_signal(signal.SIGTERM)
                text = await stream
            else:
                text, refused = await stream_while_stopping(gateway)
                assert refused
            status, _ = await gateway.ended()
    assert text.endswith("data: [DONE]\n\n")
    assert status == 0


async def test_a_second_signal_stops_all_at_once(tmp_path: Path) -> None:
    async with faulty_backend(endless) as backend:
        settings = settings_for(backend.base_url, drain_s=60)
        async with started(tmp_path, settings, *TWO) as gateway:
            await gateway.wait_ready()
            asking = asyncio.create_task(read_stream(gateway))
            await backend.asked.wait()
            gateway.process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.3)
            assert len(children(gateway)) >= 1
            gateway.process.send_signal(signal.SIGINT)
            async with asyncio.timeout(4):
                status, _ = await gateway.ended()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    assert status == 0


async def test_workers_do_not_outlive_their_supervisor(tmp_path: Path) -> None:
    async with started(tmp_path, UNREACHABLE, *TWO) as gateway:
        await gateway.wait_ready()
        await until(lambda: len(children(gateway)) == 2)
        workers = children(gateway)
        await asyncio.sleep(0.3)
        gateway.process.kill()
        await until(lambda: not any(alive(pid) for pid in workers))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_reload_reaches_every_worker(tmp_path: Path) -> None:
    async def well(connection: Connection) -> None:
        await connection.send(HEAD, events("text x", "finish"), END)

    async with faulty_backend(well) as backend:
        settings = patient(backend.base_url, reload=False)
        async with started(tmp_path, settings, *TWO) as gateway:
            await gateway.wait_ready()
            await asyncio.sleep(1)
            (tmp_path / "settings.json").write_text(json.dumps({**settings, "models": {"new": {"backend": "plain"}}}))
            gateway.process.send_signal(signal.SIGHUP)
            await asyncio.sleep(1)
            assert await answers(gateway, "new") == {200}
            for pid in children(gateway):
                os.kill(pid, signal.SIGKILL)
            # Their successors begin with the file as it is by now.
            await asyncio.sleep(2.5)
            assert await answers(gateway, "new") == {200}
            gateway.process.send_signal(signal.SIGTERM)
            await gateway.ended()


async def answers(gateway: Process, model: str) -> set[int]:
    found: set[int] = set()
    for _ in range(8):
        async with httpx.AsyncClient() as client:
            found.add((await client.post(f"{gateway.base_url}/v1/chat/completions", json=hello(model))).status_code)
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


async def test_a_worker_that_cannot_begin_ends_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text(ONCE)
    settings: dict[str, Json] = {
        "log": {"file": None},
        "backends": {"b": {"adapter": "once:OnceAdapter", "base_url": "http://127.0.0.1:1"}},
    }
    async with started(tmp_path, settings, *TWO) as gateway:
        status, errors = await gateway.ended()
    assert status == 2
    assert "ended with status 3 before it served anything" in errors
    assert errors.endswith("dragoman: the gateway could not be started; the log says why\n")


async def test_a_wrong_number_of_workers_is_one_line(tmp_path: Path) -> None:
    for number, said in (("x", "the number of workers must be"), ("0", "server.workers")):
        async with started(tmp_path, {}, "serve", "--workers", number) as gateway:
            status, errors = await gateway.ended()
        assert status == 2
        assert said in errors and errors.count("\n") == 1
