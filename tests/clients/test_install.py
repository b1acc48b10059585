"""Tests the messages of `make clients` for a program that is missing or differs from its pin."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT


def installed(folder: Path, said: str) -> tuple[int, str]:
    """Run the script with an npm and a Python that fail with these words."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("npm", "python"):
        (programs / name).write_text(f"#!/bin/sh\necho '{said}'\nexit 1\n")
        (programs / name).chmod(0o755)
    command = [str(ROOT / "requirements" / "clients" / "install"), str(folder / "clients"), str(programs / "python")]
    environ = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert said in done.stderr
    return done.returncode, done.stdout


def test_programs_that_cannot_be_installed_are_named_and_fail_nothing(tmp_path: Path) -> None:
    status, printed = installed(tmp_path, "the network is unreachable")
    assert status == 0
    assert len(printed.splitlines()) == 4
    assert all(line.startswith("NOT RUN: the clients of requirements/clients/") for line in printed.splitlines())


@pytest.mark.parametrize("said", ["npm error code EINTEGRITY", "THESE PACKAGES DO NOT MATCH THE HASHES"])
def test_another_hash_is_an_error(tmp_path: Path, said: str) -> None:
    status, printed = installed(tmp_path, said)
    assert (status, printed) == (1, "")
