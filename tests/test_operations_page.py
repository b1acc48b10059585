"""The examples on the pages for operators work."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.server.access.api_keys import load_keys
from gateway.settings import ServerSettings, TracingSettings, parse_settings
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DEPLOYMENT = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")


def block(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.+?)```", page, re.S)
    assert found
    return found[1]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "dragoman.service"
    shipped = (ROOT / "deploy" / "systemd" / "dragoman.service").read_text(encoding="utf-8")
    unit.write_text(shipped.replace("/opt/dragoman/.venv/bin/dragoman", sys.executable))
    found = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    assert "dragoman.service" not in found.stdout + found.stderr


def test_the_file_with_keys_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(re.findall(r"```text\n(# who:key.+?)```", PAGE, re.S)[0])
    assert load_keys(ServerSettings(api_keys_file=str(tmp_path / "keys")), {}).names == {"alice", "ci"}


def test_the_entry_for_keys_can_be_read() -> None:
    model = '"backends": {"b": {"adapter": "a:B", "base_url": "x"}}, "models": {"demo-agent": {"backend": "b"}}'
    settings = parse_settings(block(PAGE, "json").replace("{", "{" + model + ", ", 1))
    assert settings.keys["ci"].models == ("demo-agent",)
    assert settings.keys["*"].concurrent_streams == 16


def test_the_section_for_traces_can_be_read() -> None:
    (section,) = (found for found in re.findall(r"```json\n(.+?)```", PAGE, re.S) if "tracing" in found)
    assert parse_settings(section).tracing == TracingSettings("http://127.0.0.1:4318/v1/traces", "dragoman", 0.1)


def test_every_setting_it_names_exists() -> None:
    listed = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:server|log|limits|keys|backends|tracing)\.[a-z_.*]+)`", PAGE + DEPLOYMENT))
    # A span's attribute, not a setting.
    named.discard("server.address")
    assert named
    assert [name for name in named if f"`{name}`" not in listed] == []
