"""A request above a limit is rejected at once; one client's requests do not reject those of another."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import openai
import pytest

from gateway.core.conversation import Json
from gateway.server.access.admission import Admission
from gateway.settings import KeySettings
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.server.backend import END, HEAD, Connection, events, faulty_backend
from tests.server.conftest import settings_for
from tests.server.samples import missing


def test_other_limits_count_what_is_running() -> None:
    admission = Admission(lambda: 0)
    with admission.admit("a"):
        admission.change(None, {"a": KeySettings(concurrent_streams=1)})
        with pytest.raises(Exception, match="concurrent_streams"), admission.admit("a"):
            pass
    with admission.admit("a"):
        pass


class Gate:
    """A backend whose answers wait until they are let go, one release each."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = 0

    async def __call__(self, connection: Connection) -> None:
        self.waiting += 1
        if b"fail" in connection.body:
            await connection.send(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
            return
        if b"wait" in connection.body:
            await self.open.wait()
        await connection.send(HEAD, events("text Hello", "finish"), END)


@asynccontextmanager
async def gated(
    tmp_path: Path, settings: dict[str, Json], **backend: Json
) -> AsyncIterator[tuple[RunningGateway, Gate]]:
    (tmp_path / "keys").write_text("alice:a\nbob:b\n")
    gate = Gate()
    async with faulty_backend(gate) as faulty:
        base = settings_for(faulty.base_url, api_keys_file=str(tmp_path / "keys"))
        server, backends = base["server"], base["backends"]
        assert isinstance(server, dict) and isinstance(backends, dict) and isinstance(backends["plain"], dict)
        backends["plain"] |= {**backend, "timeouts": {"first_byte": 20}}
        backends["other"] = {**backends["plain"], "max_concurrent": None}
        models: dict[str, Json] = {"m": {"backend": "plain"}, "o": {"backend": "other"}}
        more = settings.pop("server", {})
        assert isinstance(more, dict)
        async with running_gateway({**base, "models": models, "server": {**server, **more}, **settings}) as gateway:
            yield gateway, gate


async def ask(gateway: RunningGateway, word: str, key: str = "a", model: str = "m") -> httpx.Response:
    body = {**hello(model), "messages": [{"role": "user", "content": word}]}
    headers = {"authorization": f"Bearer {key}"}
    return await gateway.client.post("/v1/chat/completions", json=body, headers=headers)


async def begun(gateway: RunningGateway, gate: Gate, key: str = "a") -> "asyncio.Task[httpx.Response]":
    """A request that the backend holds."""
    before = gate.waiting
    task = asyncio.create_task(ask(gateway, "wait", key))
    await until(lambda: gate.waiting > before)
    return task


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not seen():  # noqa: ASYNC110 (what is waited for is in another module, and sets no event)
            await asyncio.sleep(0.01)


def told(response: httpx.Response) -> tuple[int, str, str]:
    assert int(response.headers["retry-after"]) >= 1
    error = response.json()["error"]
    return response.status_code, error["type"], error["code"]


FULL = (503, "server_error", "overloaded")
LIMITED = (429, "rate_limit_error", "rate_limit_exceeded")


async def test_more_requests_than_there_is_room_for(tmp_path: Path) -> None:
    async with gated(tmp_path, {"server": {"max_requests": 1}}) as (gateway, gate):
        held = await begun(gateway, gate)
        assert told(await ask(gateway, "more", "b")) == FULL
        assert gate.waiting == 1
        headers = {"authorization": "Bearer b"}
        assert (await gateway.client.get("/v1/models", headers=headers)).status_code == 200
        gate.open.set()
        assert (await held).status_code == 200
        assert (await ask(gateway, "more", "b")).status_code == 200


async def test_a_full_backend_leaves_the_others_alone(tmp_path: Path) -> None:
    async with gated(tmp_path, {}, max_concurrent=1) as (gateway, gate):
        held = await begun(gateway, gate)
        assert told(await ask(gateway, "more")) == FULL
        assert (await ask(gateway, "more", model="o")).status_code == 200
        gate.open.set()
        assert (await held).status_code == 200
        assert (await ask(gateway, "more")).status_code == 200


async def test_places_are_given_back_by_failures_and_departures(tmp_path: Path) -> None:
    async with gated(tmp_path, {"server": {"max_requests": 1}}, max_concurrent=1) as (gateway, gate):
        for _ in range(3):
            assert (await ask(gateway, "fail")).status_code == 500
            assert (await ask(gateway, "x", model="nothing")).status_code == 404
            held = await begun(gateway, gate)
            held.cancel()
            await asyncio.gather(held, return_exceptions=True)
            await until(lambda: gateway.app.gateway_state.scheduler.size == 0)
        gate.open.set()
        assert (await ask(gateway, "wait")).status_code == 200


async def test_one_callers_limits_are_no_others(tmp_path: Path) -> None:
    keys: dict[str, Json] = {"alice": {"concurrent_streams": 1}, "bob": {"requests_per_minute": 2}}
    async with gated(tmp_path, {"keys": keys}) as (gateway, gate):
        held = await begun(gateway, gate)
        assert told(await ask(gateway, "more", "a")) == LIMITED
        assert (await ask(gateway, "fail", "b")).status_code == 500
        assert (await ask(gateway, "more", "b")).status_code == 200
        refused = await ask(gateway, "more", "b")
        assert told(refused) == LIMITED
        assert 25 <= int(refused.headers["retry-after"]) <= 30
        gate.open.set()
        assert (await held).status_code == 200
        assert (await ask(gateway, "more", "a")).status_code == 200


async def test_a_key_may_use_its_own_models(tmp_path: Path) -> None:
    keys: dict[str, Json] = {"*": {"models": ["o"]}, "bob": {}}
    async with gated(tmp_path, {"keys": keys}) as (gateway, _):
        refused = await ask(gateway, "x", "a", "m")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")
        assert (await ask(gateway, "x", "a", "o")).status_code == 200
        assert (await ask(gateway, "x", "b", "m")).status_code == 200
        shown = [
            {model["id"] for model in (await gateway.client.get("/v1/models", headers=headers)).json()["data"]}
            for headers in ({"authorization": "Bearer a"}, {"authorization": "Bearer b"})
        ]
        assert shown == [{"o"}, {"m", "o"}]


async def test_log_and_metrics_tell_the_name_and_never_the_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "keys").write_text("alice:k-very-secret\n")
    caplog.set_level("DEBUG")
    async with faulty_backend(Gate()) as faulty:
        settings = settings_for(faulty.base_url, api_keys_file=str(tmp_path / "keys"))
        async with running_gateway(settings) as gateway:
            assert (await ask(gateway, "x", "k-very-secret")).status_code == 200
            assert (await ask(gateway, "x", "k-very-wrong")).status_code == 401
            headers = {"authorization": "Bearer k-very-secret"}
            shown = (await gateway.client.get("/metrics", headers=headers)).text
    lines = (
        'gateway_requests_total{route="chat",dialect="openai_chat",key="alice",status="200"} 1',
        'gateway_requests_total{route="chat",dialect="openai_chat",key="-",status="401"} 1',
    )
    assert missing(shown, *lines) == []
    assert "key=alice" in caplog.text
    assert "k-very" not in shown + caplog.text


async def test_the_sdk_waits_and_tries_again(tmp_path: Path) -> None:
    keys: dict[str, Json] = {"alice": {"concurrent_streams": 1}}
    async with gated(tmp_path, {"keys": keys}) as (gateway, gate):
        held = await begun(gateway, gate)
        async with openai.AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key="a", max_retries=0) as client:
            create = client.chat.completions.create
            with pytest.raises(openai.RateLimitError, match="concurrent_streams"):
                await create(model="m", messages=[{"role": "user", "content": "more"}])
            create = client.with_options(max_retries=2).chat.completions.create
            asking = asyncio.create_task(create(model="m", messages=[{"role": "user", "content": "more"}]))
            await asyncio.sleep(0.2)
            gate.open.set()
            assert (await asking).choices[0].message.content == "Hello"
        assert (await held).status_code == 200
