"""Tests which store the settings open: with which seal, and the settings that are refused at the start."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import pytest

from bench.load_test.store_servers import server
from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.server.state.open_store import open_store
from gateway.server.state.store import Put
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings, read_settings

KEY: Final = "k" * 32
URL: Final = "valkey://127.0.0.1:1"


def state(**fields: Json) -> StateSettings:
    return read_settings({"state": {"store": URL, **fields}}).state


def refusal(settings: StateSettings, **environ: str) -> str:
    with pytest.raises(SettingsError) as raised:
        open_store(settings, Metrics(), environ)
    return str(raised.value)


def test_contents_go_to_a_server_encrypted_or_after_a_decision() -> None:
    assert "DRAGOMAN_STATE_KEY" in refusal(state()) and "encrypt" in refusal(state())
    assert "DRAGOMAN_STATE_KEY" in refusal(state(encrypt=True))
    assert "MINE" in refusal(state(key_env="MINE"), DRAGOMAN_STATE_KEY=KEY)
    assert "32 characters" in refusal(state(), DRAGOMAN_STATE_KEY=f"{KEY},short")
    assert open_store(state(encrypt=False), Metrics(), {}).name == "valkey://127.0.0.1:1/0"
    assert (
        open_store(state(), Metrics(), {"DRAGOMAN_STATE_KEY": f" {KEY} , {KEY[1:]}x,"}).name == "valkey://127.0.0.1:1/0"
    )


def test_a_password_is_no_part_of_any_error() -> None:
    settings = state(store="valkey://u:hunter2@cache/db", encrypt=False)
    assert "hunter2" not in refusal(settings) and "database" in refusal(settings)
    assert "STORE_PASSWORD" in refusal(state(encrypt=False, password_env="STORE_PASSWORD"))
    assert "hunter2" not in open_store(state(store="valkey://u:hunter2@cache", encrypt=False), Metrics(), {}).name


@pytest.mark.parametrize(("package", "extra"), [("valkey", "valkey")])
def test_a_missing_package_is_named_with_its_extra(package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = PathFinder.find_spec
    monkeypatch.setattr(PathFinder, "find_spec", lambda name, *rest: None if name == package else found(name, *rest))
    monkeypatch.delitem(sys.modules, package, raising=False)
    assert f"dragoman[{extra}]" in refusal(state(), DRAGOMAN_STATE_KEY=KEY)


async def test_the_password_of_the_environment_opens_the_server(tmp_path: Path) -> None:
    async with server("valkey", tmp_path, "--requirepass", "hunter2") as running:
        settings = state(store=running.url, password_env="STORE_PASSWORD")
        store = open_store(settings, Metrics(), {"STORE_PASSWORD": "hunter2", "DRAGOMAN_STATE_KEY": KEY})
        try:
            assert await store.put("a", Put("sum", b"k", b"x", 60))
        finally:
            await store.aclose()


async def test_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    async with server("valkey", tmp_path) as running:
        metrics = Metrics()
        one, other = (
            open_store(state(store=running.url), metrics, {"DRAGOMAN_STATE_KEY": key}) for key in (KEY, "x" * 32)
        )
        await one.put("a", Put("sum", b"k", b"x", 60))
        assert await other.get("a", "sum", [b"k"]) == [None]
        [sample] = metrics.state_unreadable.samples()
        assert (sample.labels, sample.value) == (("sum", "key"), 1)
        await one.aclose()
        await other.aclose()
