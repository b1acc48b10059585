"""Runs what a release publishes: installs the wheel into an empty environment, and starts its command."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from gateway.testing.gateway import GatewayCommand
from tests.paths import ROOT

DIST: Final = Path(os.environ.get("DIST", "dist"))


def distribution(suffix: str) -> Path:
    """Returns the distribution with this suffix: `whl` or `tar.gz`."""
    (found,) = DIST.glob(f"*.{suffix}")
    return found


class Environment:
    """A virtual environment that holds nothing of this checkout: `folder` is where its commands run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=120)
        self._bin = folder / "venv" / "bin"
        self._environ = {"PATH": f"{self._bin}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}

    def pip(self, *arguments: str) -> str:
        """Runs pip with its arguments, and returns what it prints."""
        # It may need the machine's own configuration to find packages.
        command = [str(self._bin / "python"), "-m", "pip", "--disable-pip-version-check", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=self.folder)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def install_release(self) -> None:
        """Installs the wheel and its pinned requirements."""
        self.pip("install", "--quiet", "--require-hashes", "-r", str(ROOT / "requirements" / "runtime.txt"))
        self.pip("install", "--quiet", "--no-deps", "--no-index", str(distribution("whl")))

    def run(self, *arguments: str) -> str:
        """Runs `dragoman ARGUMENTS`, and returns what it prints."""
        command = [str(self._bin / "dragoman"), *arguments]
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=self.folder, env=self._environ, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    @asynccontextmanager
    async def gateway(self, *arguments: str) -> AsyncIterator[str]:
        """Runs `dragoman ARGUMENTS` until the block ends. Yields its address, without `/v1`."""
        process = await asyncio.create_subprocess_exec(
            *(str(self._bin / "dragoman"), *arguments),
            cwd=self.folder,
            env=self._environ,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            command = GatewayCommand(process)
            await command.wait_ready()
            yield command.base_url
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    def installed(self) -> dict[str, str]:
        """Returns the version of each installed distribution by its normalised name."""
        listed = self.pip("list", "--format", "freeze").split()
        return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in (one.split("==") for one in listed)}
