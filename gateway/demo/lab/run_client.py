"""Runs a client's command once in a temporary folder, with an environment that knows only the laboratory."""

import asyncio
import base64
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from gateway.demo.lab.model import CUT_NOTES, CUT_NOTES_WORD, NOTES, NOTES_WORD, PICTURE, PROMPT

KEY: Final = "lab-key"
FOLDER_PREFIX: Final = "dragoman-lab-"
# What a program needs of the environment in which the laboratory was started: where programs are, and the language.
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "COMSPEC", "PATHEXT", "NODE_PATH")
# Nobody answers there: what asks for another host than this one fails at once.
_NOWHERE: Final = "http://127.0.0.1:9"
_PROXIES: Final = {
    "HTTP_PROXY": _NOWHERE,
    "HTTPS_PROXY": _NOWHERE,
    "ALL_PROXY": _NOWHERE,
    "NO_PROXY": "127.0.0.1,localhost",
}
# One white point.
_PICTURE: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
# More than any answer.
_SHOWN: Final = 2**22
# The variable that names the folder of the run, which no other run has, to whatever the client starts.
_MARK: Final = "DRAGOMAN_LAB_FOLDER"
# Seconds in which what is in a pipe can be read.
_REST: Final = 2


class Place(msgspec.Struct, frozen=True):
    """The folders of one run: `folder` is where the client works, `home` its home folder. Both are new and empty but
    for the files that may be read."""

    folder: Path
    home: Path


class Ran(msgspec.Struct, frozen=True):
    """How a run ended: the exit status, None for one that was ended at the time limit, and what it printed."""

    status: int | None
    printed: str


@contextmanager
def temporary_place() -> Iterator[Place]:
    """Makes the folders of a run, and removes them."""
    with TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True) as name:
        place = Place(Path(name).resolve() / "work", Path(name).resolve() / "home")
        place.folder.mkdir()
        place.home.mkdir()
        (place.folder / NOTES).write_text(f"The word of these notes is {NOTES_WORD}.\n")
        (place.folder / CUT_NOTES).write_text(f"The word of this other file is {CUT_NOTES_WORD}.\n")
        (place.folder / PICTURE).write_bytes(_PICTURE)
        yield place


def lab_environ(place: Place, base_url: str, given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a run: the addresses and keys of the laboratory under the names that clients and SDKs
    read, and of `environ` only what a program needs to start. `given` are the variables that the user adds."""
    kept = {name: environ[name] for name in _KEPT if name in environ}
    home = str(place.home)
    return {
        **kept,
        **{"HOME": home, "USERPROFILE": home, "TMPDIR": home, "TERM": "dumb", "NO_COLOR": "1", "DO_NOT_TRACK": "1"},
        # Some programs read one case alone: curl, for one, no HTTP_PROXY.
        **_PROXIES,
        **{name.lower(): value for name, value in _PROXIES.items()},
        **{"OPENAI_BASE_URL": f"{base_url}/v1", "OPENAI_API_KEY": KEY},
        **{"ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_API_KEY": KEY},
        **{"GOOGLE_GEMINI_BASE_URL": base_url, "GEMINI_API_KEY": KEY},
        **given,
    }


def filled(command: Sequence[str], base_url: str, model: str, folder: Path) -> list[str]:
    """Returns a command with the values of its placeholders; where it has none for the prompt, that is put last."""
    values = {"{base_url}": base_url, "{model}": model, "{prompt}": PROMPT, "{folder}": str(folder)}
    given = command if any("{prompt}" in word for word in command) else (*command, "{prompt}")
    return [_replaced(word, values) for word in given]


def _replaced(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


class _Output(asyncio.SubprocessProtocol):
    """What a process prints, of which the beginning is kept; when it has ended, and when nobody can print any more."""

    def __init__(self) -> None:
        self.printed = bytearray()
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.printed += data[: _SHOWN - len(self.printed)]

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    async def rest(self) -> None:
        """Waits until nobody can print any more, for a moment: a process that was left behind holds the pipe open."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.closed.wait(), _REST)


async def run_client(command: Sequence[str], folder: Path, environ: Mapping[str, str], limit: float) -> Ran:
    """Runs a command, for at most so many seconds, and ends all that it started. Raises OSError for one that cannot be
    started."""
    mark = f"{_MARK}={folder}"
    transport, output = await asyncio.get_running_loop().subprocess_exec(
        _Output,
        *command,
        cwd=folder,
        env={**environ, _MARK: str(folder)},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    status: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            # Not `Process.wait`, which waits for all that hold the pipe open, too.
            await asyncio.wait_for(output.exited.wait(), limit)
            status = transport.get_returncode()
            await output.rest()
    finally:
        _end(transport, mark)
        await output.exited.wait()
        await output.rest()
        transport.close()
    return Ran(status, output.printed.decode(errors="replace"))


def _end(transport: asyncio.SubprocessTransport, mark: str) -> None:
    """Ends a process; on POSIX all of its group, and on Linux what has left that, too."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            transport.kill()
        else:
            os.killpg(transport.get_pid(), signal.SIGKILL)
    for process in _marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    """Yields the processes that have this variable, as what a program starts inherits it."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        # Those of other users cannot be read, and any may end.
        with contextlib.suppress(OSError):
            if os.fsencode(mark) in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)
