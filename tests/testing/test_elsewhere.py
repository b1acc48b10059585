"""Runs the kit in an external project: an empty pytest configuration, and no plugin except hypothesis."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

EXAMPLES = ROOT / "tests" / "examples"

LIVE = """\
import asyncio

import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter
from gateway.demo.serve import serve_demo
from gateway.testing.live import LIVE_CHECKS, LiveCase, LiveCheck


@pytest.mark.parametrize("check", LIVE_CHECKS)
def test_it_is_alive(check: LiveCheck) -> None:
    async def asked() -> None:
        async with serve_demo("chat") as backend:
            await check(LiveCase(OpenAIChatAdapter, backend.base_url))

    asyncio.run(asked())
"""


@pytest.mark.full
def test_both_examples_and_a_live_backend_pass_without_configuration(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name in ("parrot", "magpie"):
        (tmp_path / f"{name}.py").write_text((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8")
        tests = (EXAMPLES / f"test_{name}.py").read_text(encoding="utf-8").replace("tests.examples.", "")
        (tmp_path / f"test_{name}.py").write_text(tests, encoding="utf-8")
    (tmp_path / "test_live.py").write_text(LIVE)
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:asyncio", "-p", "no:cacheprovider"]
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    run = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "warning" not in run.stdout and "skipped" not in run.stdout
    assert " passed" in run.stdout
