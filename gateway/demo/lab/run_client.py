"""Runs a client's command once in a temporary folder, with an environment that knows only the laboratory."""

import asyncio
import base64
import contextlib
import os
import signal
import sys
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
# One white point.
_PICTURE: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
# More than any answer.
_SHOWN: Final = 2**22


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
        **{"HTTP_PROXY": _NOWHERE, "HTTPS_PROXY": _NOWHERE, "NO_PROXY": "127.0.0.1,localhost"},
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


async def run_client(command: Sequence[str], folder: Path, environ: Mapping[str, str], limit: float) -> Ran:
    """Runs a command, for at most so many seconds, and ends all that it started. Raises OSError for one that cannot be
    started."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    reading = asyncio.create_task(_printed(process))
    try:
        status: int | None = await asyncio.wait_for(process.wait(), limit)
    except TimeoutError:
        status = None
    finally:
        _end(process)
        await process.wait()
    return Ran(status, (await reading).decode(errors="replace"))


async def _printed(process: asyncio.subprocess.Process) -> bytes:
    """Returns the beginning of what a process prints, and reads all of it."""
    assert process.stdout is not None
    kept = bytearray()
    while part := await process.stdout.read(2**16):
        kept += part[: _SHOWN - len(kept)]
    return bytes(kept)


def _end(process: asyncio.subprocess.Process) -> None:
    """Ends a process, and on POSIX all of its group."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
