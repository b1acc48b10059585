"""Has the text of a PDF read by a child process, within limits of size, pages, time and memory.

A PDF comes from whoever wrote it, so that its parser must not be able to harm more than itself: the child has nothing
of the gateway's environment, cannot open a file or a socket, and is killed when it takes too long.
"""

import asyncio
import base64
import importlib.util
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from gateway.core.data_url import DataUrl
from gateway.server.media.read_text import ReadText
from gateway.server.telemetry.metrics import Metrics

MOST_MB: Final = 32
MOST_PAGES: Final = 200
DEADLINE_S: Final = 10
MEMORY_MB: Final = 256
MOST_CHARACTERS: Final = 1_000_000
# The children of one worker at the same time.
MOST_CHILDREN: Final = 2
# What names the way of reading in the digests of what was read: texts of another one are other texts.
READER: Final = "pypdf 1"
_CHILD: Final = Path(__file__).with_name("pdf_text.py")
# A character of UTF-8 has at most four bytes, and JSON writes two for a line end.
_MOST_OUTPUT: Final = 4 * MOST_CHARACTERS + 2**20
_PIECE: Final = 2**16


class _Output(msgspec.Struct, frozen=True):
    """What the child writes."""

    text: str = ""
    problem: str = ""
    pages: int = 0
    lost: int = 0


class PdfProcesses:
    """The child processes of one worker."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._slots = asyncio.Semaphore(MOST_CHILDREN)

    async def read(self, document: DataUrl) -> ReadText:
        """Returns the text of a PDF; where there is none, why."""
        found = await self._read(document)
        self._metrics.documents.inc("failed" if found.problem else "read")
        return found

    async def _read(self, document: DataUrl) -> ReadText:
        size = len(document.data) * 3 // 4
        if size > MOST_MB * 2**20 + 2:
            return ReadText(problem=f"it has {size / 2**20:.1f} MB, and at most {MOST_MB} are read")
        async with self._slots:
            # Not sooner: those that wait hold it once.
            return _read_text(await _run(await asyncio.to_thread(base64.b64decode, document.data)))


def _read_text(output: _Output | str) -> ReadText:
    if isinstance(output, str):
        return ReadText(problem=output)
    match output.problem:
        case "":
            return ReadText(output.text, pages=output.pages, lost=output.lost)
        case "encrypted":
            problem = "it is encrypted"
        case "pages":
            problem = f"it has {output.pages} pages, and at most {MOST_PAGES} are read"
        case "characters":
            problem = f"it has more than {MOST_CHARACTERS} characters"
        case "empty":
            problem = "it has no text layer"
        case "memory":
            problem = f"it needs more than {MEMORY_MB} MB of memory"
        case _:
            problem = "it is broken"
    return ReadText(problem=problem, pages=output.pages)


async def _run(data: bytes) -> _Output | str:
    """Returns what the child writes for a PDF, or why it writes nothing."""
    pypdf = importlib.util.find_spec("pypdf")
    if pypdf is None or pypdf.origin is None:
        return "pypdf is not installed"
    limits = (MEMORY_MB * 2**20, DEADLINE_S, MOST_PAGES, MOST_CHARACTERS)
    try:
        child = await asyncio.create_subprocess_exec(
            # Without the environment and without what is installed for the user.
            *(sys.executable, "-I", "-S", str(_CHILD), str(Path(pypdf.origin).parents[1]), *map(str, limits)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env={},
        )
    except OSError as error:
        # Descriptors, processes or memory are used up.
        return f"no process can be started for it ({error.strerror})"
    try:
        async with asyncio.timeout(DEADLINE_S):
            written = await _exchange(child, data)
            if len(written) > _MOST_OUTPUT:
                return "it cannot be read"
            status = await child.wait()
    except TimeoutError:
        return f"it takes more than {DEADLINE_S} s"
    finally:
        if child.returncode is None:
            await _end(child)
    try:
        return msgspec.json.decode(written, type=_Output)
    except msgspec.DecodeError:
        over = status in (-signal.SIGXCPU, -signal.SIGKILL)
        return f"it takes more than {DEADLINE_S} s" if over else "it cannot be read"


async def _end(child: asyncio.subprocess.Process) -> None:
    """Kills a child. What it has written is read, because its end is noticed only behind that."""
    with suppress(ProcessLookupError):
        child.kill()
    while child.stdout is not None and await child.stdout.read(_PIECE):
        pass
    await child.wait()


async def _exchange(child: asyncio.subprocess.Process, data: bytes) -> bytes:
    """Sends the child a PDF, and returns what it writes, as far as that may be."""
    assert child.stdin is not None and child.stdout is not None  # both are pipes
    # A child that has ended reads no more.
    with suppress(BrokenPipeError, ConnectionResetError):
        child.stdin.write(data)
        await child.stdin.drain()
        child.stdin.close()
    written = bytearray()
    while len(written) <= _MOST_OUTPUT and (piece := await child.stdout.read(_PIECE)):
        written += piece
    return bytes(written)
