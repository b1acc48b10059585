"""`dragoman config show --running`: where a running gateway and the settings file differ."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.commands.config_running import differences
from gateway.settings import read_settings
from gateway.settings.flat_values import flat_values
from gateway.testing.gateway import gateway_command, python_process, running_gateway

BACKENDS: dict[str, Any] = {"b": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9"}}  # JSON


def settings(**more: Any) -> dict[str, Any]:
    """Settings with one model. (Any: JSON.)"""
    base = {"server": {"api_keys_env": None}, "log": {"file": None}}
    return {**base, "backends": BACKENDS, "models": {"m": {"backend": "b"}}, **more}


async def shown(folder: Path, *arguments: str, **environ: str) -> tuple[int | None, str]:
    """The exit status and what is printed."""
    command = ("-m", "gateway", "config", "show", "--running", *arguments)
    async with python_process(folder, *command, environ=environ) as process:
        out, err = await asyncio.wait_for(process.communicate(), 40)
    return process.returncode, (out + err).decode()


async def test_what_waits_for_a_restart_is_told_and_what_was_reloaded_is_not(tmp_path: Path) -> None:
    async with running_gateway(settings()) as gateway:
        changed = settings(repair="strict", limits={"max_response_mb": 7})
        await gateway.app.gateway_state.change(read_settings(changed))
        found = (await gateway.client.get("/inspect/api/running-settings")).json()
    file = read_settings(changed).on(BACKENDS.keys())
    different = {one.path: one for one in differences(found, flat_values(file))}
    assert set(different) == {"limits.max_response_mb", "server.port"}
    waits = different["limits.max_response_mb"]
    assert (waits.running, waits.file, waits.reason) == (64, 7, "waits for a restart")


@pytest.mark.parametrize(("reload", "reason"), [(True, "the log of the gateway says why"), (False, "send SIGHUP")])
def test_what_was_not_read_has_its_reason(reload: bool, reason: str) -> None:
    found = {"values": {"repair": "off", "keys": {}}, "waiting": ["limits"], "reloads": reload}
    (one,) = differences(found, {"repair": "strict", "keys": {}})
    assert one.text().startswith('repair  "off"  the file: "strict"  not read') and one.text().endswith(reason)


async def test_the_command_asks_the_gateway_that_runs(tmp_path: Path) -> None:
    async with gateway_command(tmp_path, settings(), "serve", "--port", "0") as gateway:
        await gateway.wait_ready()
        assert await shown(tmp_path, "server", "--url", gateway.base_url) == (
            1,
            "server.port  0  the file: 8000  set by an option or a variable of the gateway, or waits for a restart\n",
        )
        status, said = await shown(tmp_path, "models", "--url", gateway.base_url)
        assert (status, said) == (0, f"{gateway.base_url} uses the values of settings.json.\n")
        status, said = await shown(tmp_path, "modles", "--url", gateway.base_url)
        assert (status, "there is no setting 'modles'" in said) == (2, True)
        (tmp_path / "other.json").write_text(json.dumps(settings(repair="off")))
        status, said = await shown(tmp_path, "repair", "--json", "--settings", "other.json", "--url", gateway.base_url)
        assert (status, json.loads(said)[0]["running"], json.loads(said)[0]["file"]) == (1, "repair", "off")


async def test_only_the_operator_may_ask(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(settings()))
    async with gateway_command(tmp_path, settings(), "serve", "--port", "0", DRAGOMAN_ADMIN_KEY="k" * 20) as gateway:
        await gateway.wait_ready()
        status, said = await shown(tmp_path, "--url", gateway.base_url)
        assert (status, "admin key is required" in said) == (2, True)
        status, said = await shown(tmp_path, "models", "--url", gateway.base_url, DRAGOMAN_ADMIN_KEY="k" * 20)
        assert status == 0, said


async def test_no_gateway_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(settings()))
    status, said = await shown(tmp_path, "--url", "http://127.0.0.1:9")
    assert status == 2 and said.startswith("dragoman: http://127.0.0.1:9") and "no gateway answers there" in said
