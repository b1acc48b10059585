"""A scratch repository and home folder for one run of a client program, and everything that it started ended after."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

LONGEST: Final = 180
SECRET: Final = "swordfish"
_FILES: Final = {"README.md": f"# Sample\n\nThe password is {SECRET}.\n", "src/app.py": 'print("hello")\n'}
# What every process of a run inherits, also one that has left its group.
_MARK: Final = "DRAGOMAN_CLIENT_RUN"
# Nobody answers there, and what asks for another host than this one shall not wait for it.
_NOWHERE: Final = "http://127.0.0.1:9"


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended and what it printed, without colours."""

    status: int
    printed: str


class Scratch:
    """`repository` is a git repository with one commit; `home` is empty."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.repository = folder / "repository"
        self.home.mkdir()
        for name, text in _FILES.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self._git("init", "--quiet")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "Begin")
        self._begun = self._git("log", "--format=%H %s")
        # Programs of Node find their packages in a folder above their own.
        (folder / "node_modules").symlink_to(Path(os.environ.get("CLIENTS", "")) / "node_modules")

    def _git(self, *arguments: str) -> str:
        author = ("-c", "user.name=Someone", "-c", "user.email=someone@example.com")
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        command = ("git", *author, *arguments)
        return subprocess.run(
            command, cwd=self.repository, env=environ, check=True, capture_output=True, text=True
        ).stdout

    def state(self) -> str:
        """The commits and every file that is not as it was committed."""
        return self._git("log", "--format=%H %s") + self._git("status", "--porcelain", "--untracked-files=all")

    @property
    def changed(self) -> list[str]:
        """The files that are not as they were committed; a new commit counts as one."""
        commits = self._git("log", "--format=%H %s")
        files = self._git("status", "--porcelain", "--untracked-files=all").splitlines()
        return sorted([line[3:] for line in files] + ([] if commits == self._begun else ["a commit"]))

    def write(self, name: str, text: str) -> None:
        """A file below the home folder."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, commands: str, environ: Mapping[str, str], longest: float = LONGEST) -> Outcome:
        """Run lines of a shell in the repository, for at most so many seconds."""
        everywhere = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "NO_COLOR": "1",
            "DO_NOT_TRACK": "1",
            "HTTP_PROXY": _NOWHERE,
            "HTTPS_PROXY": _NOWHERE,
            "NO_PROXY": "127.0.0.1,localhost",
            "npm_config_offline": "true",
            _MARK: str(self.home),
        }
        with _ended_after(self.home), (self.home / "printed").open("w+b") as printed:
            process = subprocess.Popen(
                ["bash", "-euc", commands],
                cwd=self.repository,
                env={**everywhere, **environ},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(longest)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            printed.seek(0)
            return Outcome(status, printed.read().decode(errors="replace"))


def printed_by(program: Path | str, scratch: Scratch, commands: str, environ: Mapping[str, str]) -> str:
    """What commands print that find an installed program, and those of this project, on their path. The test is skipped
    where the program is not there, and fails where the commands do."""
    if not Path(program).exists():
        pytest.skip(f"NOT RUN: {program}, because its package could not be installed here")
    folders = (str(Path(program).parent), str(Path(sys.executable).parent), os.environ["PATH"])
    outcome = scratch.run(commands, {"PATH": os.pathsep.join(folders), **environ})
    assert outcome.status == 0, outcome.printed
    return outcome.printed


def claude_environ(url: str, model: str) -> dict[str, str]:
    """What Claude Code needs to ask a gateway for one model alone, and nothing else of anybody."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "unused",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


@contextmanager
def _ended_after(home: Path) -> Iterator[None]:
    """A program may leave a daemon behind; where the system shows what processes inherited, none stays."""
    try:
        yield
    finally:
        deadline = time.monotonic() + 10
        while (left := _left(home)) and time.monotonic() < deadline:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.05)
        assert not left, f"processes stay behind: {left}"


def _left(home: Path) -> list[int]:
    mark = f"{_MARK}={home}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
