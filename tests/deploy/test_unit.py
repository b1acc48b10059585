"""Tests the unit of systemd: what it starts, and that it waits for running streams."""

import re
import shlex
from configparser import RawConfigParser
from typing import Final

from gateway.settings import Settings
from tests.deploy.files import PAGE, UNIT
from tests.paths import ROOT


def service() -> dict[str, str]:
    """Returns the settings of the service; of one that is set twice, the last."""
    parser = RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return dict(parser["Service"])


SERVICE: Final = service()


def test_it_starts_the_program_of_the_checkout_with_the_settings_of_the_page() -> None:
    program, command, option, settings = shlex.split(SERVICE["ExecStart"])
    checkout, environment, _, name = program.rsplit("/", 3)
    assert f"A checkout in `{checkout}`" in PAGE and f"`{settings}`" in PAGE
    assert f"VENV := {environment}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f'{name} = "gateway.cli:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"`{option} SETTINGS`" in (ROOT / "docs" / "cli.md").read_text().partition(f"## `dragoman {command}`")[2]
    assert f"`{SERVICE['EnvironmentFile'].removeprefix('-')}`" in PAGE


def test_it_has_a_folder_for_the_log() -> None:
    folder = f"/var/lib/{SERVICE['StateDirectory']}"
    assert SERVICE["WorkingDirectory"] == folder
    assert f"`{folder}/{Settings().log.file}`" in PAGE


def test_the_folder_with_the_key_is_for_the_service_alone_and_the_page_says_how_a_command_finds_it() -> None:
    assert SERVICE["StateDirectoryMode"] == "0700"
    assert f"STATE_DIRECTORY=/var/lib/{SERVICE['StateDirectory']}" in PAGE


def test_a_stop_waits_for_running_streams_and_a_reload_is_a_hang_up() -> None:
    assert int(SERVICE["TimeoutStopSec"]) > Settings().server.graceful_shutdown_timeout_s
    assert SERVICE["KillMode"] == "mixed"
    assert re.fullmatch(r"/bin/kill -HUP \$MAINPID", SERVICE["ExecReload"])


def test_wrong_settings_are_not_tried_again() -> None:
    assert (SERVICE["Restart"], SERVICE["RestartPreventExitStatus"]) == ("on-failure", "2")
