"""The page shows every setting in use and what sets it, also where the file says something else by now."""

import json
from pathlib import Path
from typing import Any, Final, cast

import httpx
import pytest

from gateway.settings import load_settings
from gateway.settings.source import SettingsSource
from gateway.testing.gateway import RunningGateway, gateway_command, running_gateway
from tests.server.api.inspect.test_routes import settings

SECRET_HEADER: Final = "header-secret-1"
CREDENTIAL: Final = "credential-secret-1"


def own(**more: Any) -> dict[str, Any]:
    """Settings with a backend that has secrets, one of them in the wrong place. (Any: JSON.)"""
    entry = {
        "adapter": "openai_chat",
        "base_url": "http://127.0.0.1:9/v1",
        "api_key_env": "MINE",
        "headers": {"x-team": SECRET_HEADER},
    }
    return {**settings(), "backends": {"b": entry}, "models": {"m": {"backend": "b", "name": CREDENTIAL}}, **more}


def written(path: Path, values: dict[str, Any]) -> Path:
    path.write_text(json.dumps(values, indent=1))
    return path


async def view(gateway: RunningGateway) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Returns the answer, and its rows by their paths."""
    answer = await gateway.client.get("/inspect/api/effective-settings")
    assert answer.status_code == 200, answer.text
    found = cast("dict[str, Any]", answer.json())
    return found, {row["path"]: row for row in found["rows"]}


async def test_each_value_has_its_origin_and_no_secret_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", CREDENTIAL)
    path = written(tmp_path / "settings.json", own(repair="strict", max_tool_results=7))
    async with running_gateway(own(repair="strict", max_tool_results=7)) as gateway:
        gateway.app.gateway_state.source = SettingsSource(path, lambda: load_settings(path))
        found, rows = await view(gateway)
        assert (found["file"], found["fault"]) == ("settings.json", "")
        line = next(at for at, text in enumerate(path.read_text().split("\n"), 1) if '"max_tool_results"' in text)
        assert rows["max_tool_results"]["value"] == 7
        assert rows["max_tool_results"]["origin"] == f"settings.json:{line}"
        assert rows["max_tool_results"]["over"] == [{"value": 10, "origin": "default"}]
        assert rows["limits.max_response_mb"]["origin"] == "default"
        assert rows["backends.b.headers"]["value"] == {"x-team": "(hidden)"} and "models.m.name" in rows
        # The limits of the top level are not those of a native backend.
        limit = rows["models.m.max_tool_results"]
        assert (limit["value"], limit["origin"], limit["differs"]) == (None, "native backend", False)
        assert SECRET_HEADER not in json.dumps(found) and CREDENTIAL not in json.dumps(found)
        # The file changes: one value waits for a restart, one is not read yet.
        written(path, own(repair="off", max_tool_results=7, limits={"max_response_mb": 9}))
        _, rows = await view(gateway)
        assert (rows["repair"]["value"], rows["repair"]["differs"], rows["repair"]["file"]) == ("strict", True, "off")
        assert "not read yet" in rows["repair"]["origin"]
        await gateway.app.gateway_state.change(load_settings(path))
        _, rows = await view(gateway)
        assert (rows["repair"]["value"], rows["repair"]["differs"]) == ("off", False)
        assert "waits for a restart" in rows["limits.max_response_mb"]["origin"]
        # It breaks: what is in use is still shown, and what is wrong.
        path.write_text("{]")
        found, rows = await view(gateway)
        assert "line 1" in found["fault"] and rows["repair"]["value"] == "off"
        assert rows["max_tool_results"]["origin"] == "the file as it was before, an option or a variable"
        assert rows["inspector.keep_mb"]["origin"] == "default"


async def test_a_secret_of_a_file_that_is_not_read_yet_is_hidden_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", CREDENTIAL)
    path = written(tmp_path / "settings.json", own())
    async with running_gateway(own()) as gateway:
        gateway.app.gateway_state.source = SettingsSource(path, lambda: load_settings(path))
        entry = {
            **own()["backends"]["b"],
            "base_url": "http://user:url-secret-2@127.0.0.1:9/v1",
            "headers": {"x-team": "header-secret-2"},
        }
        written(path, own(backends={"b": entry}))
        found, rows = await view(gateway)
        address = rows["backends.b.base_url"]
        assert (address["value"], address["file"]) == ("http://127.0.0.1:9/v1", "http://(hidden)@127.0.0.1:9/v1")
        for secret in ("url-secret-2", "header-secret-2", SECRET_HEADER):
            assert secret not in json.dumps(found)


async def test_what_the_command_line_sets_says_so(tmp_path: Path) -> None:
    async with gateway_command(tmp_path, settings(), "serve", "--port", "0") as gateway:
        await gateway.wait_ready()
        async with httpx.AsyncClient(base_url=gateway.base_url, trust_env=False, timeout=30) as client:
            rows = (await client.get("/inspect/api/effective-settings")).json()["rows"]
    (port,) = [row for row in rows if row["path"] == "server.port"]
    assert (port["value"], port["origin"]) == (0, "an option or a variable")
    assert port["over"] == [{"value": 8000, "origin": "default"}]


async def test_a_gateway_without_a_file_says_so() -> None:
    async with running_gateway(settings(keep=17)) as gateway:
        found, rows = await view(gateway)
        assert found["file"] == ""
        assert rows["inspector.keep"]["origin"] == "the program"
        assert rows["inspector.keep_mb"]["origin"] == "default"
