"""Tests changes of the settings file while the gateway runs."""

import asyncio
import json
import os
import pty
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.server.process.settings_reload import Reloader
from gateway.settings import (
    LimitSettings,
    LogSettings,
    ServerSettings,
    Settings,
    StateSettings,
    TracingSettings,
    load_settings,
    read_settings,
)
from gateway.settings.reload_policy import RESTART_ONLY, keep_restart_only, restart_only
from gateway.settings.source import SettingsSource
from gateway.testing.gateway import GatewayCommand, RunningGateway, gateway_command, hello, running_gateway
from tests.server.backend import END, HEAD, Connection, Script, events, faulty_backend
from tests.server.conftest import settings_for
from tests.server.samples import missing
from tests.tiers import sample


def saying(word: str) -> Script:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events(f"text {word}", "finish"), END)

    return script


def text_of(response: httpx.Response) -> str:
    content: str = response.json()["choices"][0]["message"]["content"]
    return content


async def test_new_requests_use_the_new_settings_and_running_ones_finish_on_the_old() -> None:
    going_on = asyncio.Event()

    async def slow(connection: Connection) -> None:
        await connection.send(HEAD, events("text old"))
        await going_on.wait()
        await connection.send(events("text !", "finish"), END)

    async with (
        faulty_backend(slow) as old,
        faulty_backend(saying("new")) as new,
        running_gateway(settings_for(old.base_url)) as gateway,
        gateway.client.stream("POST", "/v1/chat/completions", json={**hello(), "stream": True}) as response,
    ):
        pieces = response.aiter_text()
        first = await anext(pieces)
        await change(gateway, {**settings_for(new.base_url), "models": {"m": {"backend": "plain"}}})
        assert text_of(await gateway.chat()) == "new"
        assert (await gateway.chat(model="n")).status_code == 404
        going_on.set()
        rest = first + "".join([piece async for piece in pieces])
    assert '"old"' in rest and '"!"' in rest
    assert rest.endswith("data: [DONE]\n\n")


async def change(gateway: RunningGateway, settings: Mapping[str, Json]) -> tuple[str, ...]:
    wanted = read_settings(dict(settings))
    port = gateway.app.gateway_state.settings.server.port
    wanted = msgspec.structs.replace(wanted, server=msgspec.structs.replace(wanted.server, port=port))
    return await gateway.app.gateway_state.change(wanted)


async def test_limits_policies_keys_and_demo_backends_change_too(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("alice:a\n")
    settings = settings_for("http://127.0.0.1:1")
    async with running_gateway(settings) as gateway:
        changed: dict[str, Json] = {
            "server": {"api_keys_file": str(tmp_path / "keys"), "api_keys_env": None, "max_body_mb": 0.001},
            "keys": {"alice": {"requests_per_minute": 1}},
            "backends": {"d": {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", "base_url": "demo:chat"}},
            "models": {"m": {"backend": "d"}},
            "repair": "strict",
            "log": {"file": None, "level": "debug"},
        }
        assert await change(gateway, changed) == ()
        assert (await gateway.chat()).status_code == 401
        gateway.client.headers["authorization"] = "Bearer a"
        assert text_of(await gateway.chat())
        assert (await gateway.chat()).status_code == 429
        await change(gateway, {**changed, "keys": {}})
        assert (await gateway.chat(messages=[{"role": "user", "content": "x" * 2000}])).status_code == 413
        broken: list[Json] = [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c", "content": "x"}]
        assert (await gateway.chat(messages=broken)).status_code == 400


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"keys": {"alice": {}}}, r"keys\.alice"),
        ({"server": {"api_keys_file": "none"}}, r"server\.api_keys_file"),
        ({"backends": {"x": {"adapter": "nowhere:X", "base_url": "http://x"}}, "models": {}}, r"backends\.x\.adapter"),
    ],
)
async def test_an_invalid_reload_changes_nothing(wrong: dict[str, Json], said: str) -> None:
    async with faulty_backend(saying("old")) as backend:
        settings = settings_for(backend.base_url)
        async with running_gateway(settings) as gateway:
            before = gateway.app.gateway_state.settings
            with pytest.raises(SettingsError, match=said):
                await change(gateway, {**settings, **wrong})
            assert gateway.app.gateway_state.settings is before
            assert text_of(await gateway.chat()) == "old"
            assert (await gateway.client.get("/readyz")).status_code == 200


async def test_an_open_address_cannot_lose_its_keys() -> None:
    services_settings = settings_for("http://127.0.0.1:1")
    async with running_gateway(services_settings) as gateway:
        gateway_state = gateway.app.gateway_state
        gateway_state.settings = read_settings({**services_settings, "server": {"host": "0.0.0.0"}})
        gateway_state.check_exposure(True)
        with pytest.raises(SettingsError, match="would accept every client"):
            gateway_state.check_exposure(False)
        with pytest.raises(SettingsError, match="would accept every client"):
            await gateway_state.change(gateway_state.settings)


def test_what_is_bound_or_opened_at_the_start_stays() -> None:
    used = Settings()
    wanted = read_settings(
        {
            "server": {"port": 1, "max_requests": 2, "graceful_shutdown_timeout_s": 1},
            "log": {"file": "x", "level": "debug"},
        }
    )
    result, kept = keep_restart_only(used, wanted)
    assert kept == ("server.port", "server.graceful_shutdown_timeout_s", "log.file")
    assert (result.server.port, result.server.max_requests, result.log.level) == (8000, 2, "debug")
    assert keep_restart_only(used, used) == (used, ())


@pytest.mark.parametrize("part", [ServerSettings, LimitSettings, LogSettings, StateSettings, TracingSettings])
def test_a_part_with_settings_that_stay_has_others_that_change(part: type[msgspec.Struct]) -> None:
    assert 0 < len(restart_only(part)) < len(part.__struct_fields__)


def test_every_part_with_a_marked_setting_is_looked_at() -> None:
    parts = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    marked = {
        name
        for name, kind in parts.items()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and restart_only(kind)
    }
    assert marked == set(RESTART_ONLY)


@asynccontextmanager
async def watched(path: Path, settings: dict[str, Json]) -> AsyncIterator[tuple[RunningGateway, Reloader]]:
    def load() -> Settings:
        found = load_settings(path)
        return msgspec.structs.replace(found, server=msgspec.structs.replace(found.server, port=0))

    async with running_gateway(settings) as gateway:
        reloader = Reloader(gateway.app.gateway_state, SettingsSource(path, load), look_s=0.02)
        task = asyncio.create_task(reloader.run())
        yield gateway, reloader
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_bad_files_are_told_by_line_or_key_and_the_next_good_one_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "settings.json"
    async with faulty_backend(saying("old")) as old, faulty_backend(saying("new")) as new:
        settings = settings_for(old.base_url)
        path.write_text(json.dumps(settings))
        async with watched(path, settings) as (gateway, _):
            caplog.set_level("INFO", "gateway")
            path.write_text('{\n  "models": {},\n  oops\n}')
            await logged(caplog, f"the old ones stay in use: {path}: line 3, column 3: ")
            path.write_text('{\n  "modles": {}\n}')
            await logged(caplog, f"{path}: line 2: unknown setting 'modles'; did you mean 'models'?")
            wrong = {"backends": {"x": {"adapter": "text", "base_url": "http://x", "wire": "olama"}}}
            path.write_text(json.dumps(wrong, indent=1))
            await logged(caplog, f"{path}: line 3: backends.x: there is no wire 'olama'; did you mean 'ollama'?")
            path.unlink()
            assert text_of(await gateway.chat()) == "old"
            fresh = tmp_path / "fresh"
            fresh.write_text(json.dumps({**settings_for(new.base_url, port=1), "log": {"file": "moved.log"}}))
            fresh.rename(path)
            await logged(caplog, "settings reloaded; changed: backends")
            await logged(caplog, "these settings need a restart, and stay as they were: log.file")
            assert text_of(await gateway.chat()) == "new"
            shown = (await gateway.client.get("/metrics")).text
    assert missing(shown, "gateway_config_reload_failures_total 3", "gateway_config_reloads_total 1") == []


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    async with asyncio.timeout(30):
        while text not in caplog.text:  # noqa: ASYNC110 (a log sets no event)
            await asyncio.sleep(0.01)


async def test_the_file_with_the_keys_is_watched_as_well(tmp_path: Path) -> None:
    path, keys = tmp_path / "settings.json", tmp_path / "keys"
    keys.write_text("alice:one\n")
    async with faulty_backend(saying("x")) as backend:
        settings = settings_for(backend.base_url, api_keys_file=str(keys))
        path.write_text(json.dumps(settings))
        async with watched(path, settings) as (gateway, _):
            gateway.client.headers["authorization"] = "Bearer second"
            assert (await gateway.chat()).status_code == 401
            keys.write_text("alice:one\nalice:second\n")
            async with asyncio.timeout(30):
                while (await gateway.chat()).status_code == 401:
                    pass


@pytest.mark.full
async def test_a_signal_reads_the_file_though_watching_is_off(tmp_path: Path) -> None:
    async with faulty_backend(saying("old")) as old, faulty_backend(saying("new")) as new:
        settings = settings_for(old.base_url, reload=False)
        async with gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway:
            await gateway.wait_ready()
            assert await said(gateway) == "old"
            (tmp_path / "settings.json").write_text(json.dumps(settings_for(new.base_url, reload=False)))
            await asyncio.sleep(1.2)
            assert await said(gateway) == "old"
            gateway.process.send_signal(signal.SIGHUP)
            async with asyncio.timeout(30):
                while await said(gateway) == "old":
                    pass
            gateway.process.send_signal(signal.SIGTERM)
            status, errors = await gateway.ended()
    assert status == 0
    assert "settings reloaded; changed: backends" in errors
    assert "need a restart" not in errors


async def said(gateway: GatewayCommand) -> str:
    async with httpx.AsyncClient(timeout=30) as client:
        return text_of(await client.post(f"{gateway.base_url}/v1/chat/completions", json=hello()))


@sample(lambda workers: 1)
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_closing_its_terminal_ends_the_gateway(tmp_path: Path, workers: str) -> None:
    ours, theirs = pty.openpty()
    arguments = ("serve", "--port", "0", "--workers", workers)
    async with gateway_command(tmp_path, settings_for("http://127.0.0.1:1"), *arguments, stderr=theirs) as gateway:
        os.close(theirs)
        await gateway.wait_ready()
        os.close(ours)
        gateway.process.send_signal(signal.SIGHUP)
        status, _ = await gateway.ended()
    assert status == 0
