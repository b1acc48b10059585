"""Tests what `make browser`, `make clients` and `make grpc` say of a program that is missing or not the pinned one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT


def installed(what: str, folder: Path, said: str) -> tuple[int, str]:
    """Run the script with an npm, a Python and an apt-get that fail with these words."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("npm", "python", "apt-get"):
        (programs / name).write_text(f"#!/bin/sh\necho '{said}'\nexit 1\n")
        (programs / name).chmod(0o755)
    command = [str(ROOT / "requirements" / what / "install"), str(folder / what), str(programs / "python")]
    environ = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert said in done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("what", "count", "line"),
    [
        ("browser", 2 if shutil.which("chromium") else 3, "NOT RUN: the tests of requirements/browser/"),
        ("clients", 4, "NOT RUN: the clients of requirements/clients/"),
        ("grpc", 7, "NOT RUN: the servers of requirements/grpc/"),
    ],
)
def test_programs_that_cannot_be_installed_are_named_and_fail_nothing(
    what: str, count: int, line: str, tmp_path: Path
) -> None:
    status, printed = installed(what, tmp_path, "the network is unreachable")
    assert status == 0
    assert len(printed.splitlines()) == count
    assert all(printed_line.startswith(line) for printed_line in printed.splitlines())


@pytest.mark.parametrize("what", ["browser", "clients", "grpc"])
@pytest.mark.parametrize("said", ["npm error code EINTEGRITY", "THESE PACKAGES DO NOT MATCH THE HASHES"])
def test_another_hash_is_an_error(what: str, said: str, tmp_path: Path) -> None:
    status, printed = installed(what, tmp_path, said)
    assert (status, printed) == (1, "")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("install-gateway", ["creating the environment", "installing the gateway with its packages"]),
        (
            "test",
            ["creating the environment", "installing the gateway", "installing the tools of the tests", "collecting"],
        ),
    ],
)
def test_make_says_what_it_does_before_it_takes_long(target: str, said: list[str], tmp_path: Path) -> None:
    """On standard error, so that the output of `make run` is that of the command."""
    command = ["make", "--no-print-directory", "--dry-run", target, f"VENV={tmp_path / 'none'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    lines = [line for line in done.stdout.splitlines() if "make: " in line]
    assert all(line.startswith('echo "make: ') and line.endswith(" >&2") for line in lines)
    assert len(lines) == len(said) and all(word in line for word, line in zip(said, lines, strict=True))
    assert ("requirements/dev.txt" in done.stdout) == (target == "test")
