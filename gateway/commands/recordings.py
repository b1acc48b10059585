"""Runs `dragoman replay` and `minimise`: runs recorded requests again, and makes recordings smaller."""

import argparse
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.commands.parser import add_out, add_settings, settings_if_any, speed, whole_number
from gateway.commands.terminal import counted, sized

if TYPE_CHECKING:
    from gateway.recording.minimise import Judge
    from gateway.recording.recording import Recording

REPLAY_HELP: Final = "run recorded requests again without a network, or serve them as a fake backend"
MINIMISE_HELP: Final = "make a recording smaller while it still shows one thing"
_SUFFIX: Final = ".dragoman.jsonl"
_COMMAND: Final = "command:"


def add_replay(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of `dragoman replay`."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    add_settings(parser, environ)
    parser.add_argument("--session", metavar="ID", help="only the requests of this session")
    parser.add_argument("--serve", action="store_true", help="serve the recorded responses on a loopback port")
    parser.add_argument(
        "--as", choices=("backend", "openai"), default="backend", dest="side", help="the side that is served"
    )
    parser.add_argument(
        "--match", choices=("shape", "exact", "sequence"), default="shape", help="how a request finds its response"
    )
    parser.add_argument("--speed", type=speed, default=1.0, metavar="X", help="how fast; 0: without any pause")
    parser.add_argument(
        "--port", type=whole_number(0, 65535), default=0, help="the port to serve on (default any free one)"
    )


def add_minimise(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of `dragoman minimise`."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    parser.add_argument(
        "--until", default="same", metavar="TEST", help="rule:CODE, code:CODE, status:N, same, or command:COMMAND"
    )
    add_out(parser, "the file to write (default FILE with .min)")
    add_settings(parser, environ)


def replay(options: argparse.Namespace) -> int:
    """Runs `dragoman replay`. Raises InvalidRequest and SettingsError."""
    from gateway.core.errors import GatewayError, InvalidRequest
    from gateway.recording.files import load_recording
    from gateway.recording.offline_run import run_offline
    from gateway.recording.outcome import compare_to_recorded

    recording = load_recording(options.file)
    if options.session is not None:
        recording = _of_session(recording, options.session)
    if options.serve:
        return _serve(options, recording)
    settings = settings_if_any(options.settings)
    interactions = recording.interactions()
    if not interactions:
        raise InvalidRequest(f"{options.file}: the recording has no request.")
    different = False
    for interaction in interactions:
        try:
            checks = compare_to_recorded(interaction, run_offline(interaction, settings))
        except GatewayError as error:
            print(f"{interaction.request.id}: {error.message}")
            different = True
            continue
        shown = [f"{check.subject}: {check.size}, {'differs' if check.difference else 'same'}." for check in checks]
        print(f"{interaction.request.id} {' '.join(shown)}")
        for check in checks:
            if check.difference:
                print(f"  {check.subject}: {check.difference}")
                different = True
    redaction = recording.header.redaction
    if different and redaction.level != "none" and not redaction.checked:
        print("Words were replaced, and nobody checked then that the recording still shows the same: where words")
        print("decide, it may differ for that alone. `dragoman record` checks, and names what to keep.")
    return 1 if different else 0


def _of_session(recording: "Recording", session: str) -> "Recording":
    """Returns the requests of a session alone. Raises InvalidRequest where there are none."""
    from gateway.core.errors import InvalidRequest
    from gateway.inspector.recorded_requests import session_of

    found = [one for one in recording.interactions() if (of := session_of(one)) is not None and of.id == session]
    if not found:
        raise InvalidRequest(f"The recording has no request of the session {session[:128]!r}.")
    return recording.with_interactions(found)


def _serve(options: argparse.Namespace, recording: "Recording") -> int:
    import asyncio
    import contextlib
    import os

    from gateway.core.errors import InvalidRequest
    from gateway.recording.playback import serve_recording

    async def serve() -> None:
        async with serve_recording(recording, options.side, options.match, options.speed, options.port) as playing:
            print(
                f"{counted(len(recording.interactions()), 'request')} on {playing.base_url}; Ctrl-C ends it",
                flush=True,
            )
            await asyncio.Event().wait()

    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve())
    except OSError as error:
        raise InvalidRequest(f"Port {options.port}: cannot be served: {os.strerror(error.errno or 0)}") from error
    return 0


def minimise(options: argparse.Namespace) -> int:
    """Runs `dragoman minimise`. Raises InvalidRequest and SettingsError."""
    from gateway.recording import minimise as search
    from gateway.recording.files import load_recording, save_recording

    recording, settings = load_recording(options.file), settings_if_any(options.settings)
    judge = _judge(options.until.removeprefix(_COMMAND)) if options.until.startswith(_COMMAND) else None
    found = search.minimise(recording, options.until, settings, judge)
    out = options.out or options.file.with_name(f"{options.file.name.removesuffix(_SUFFIX)}.min{_SUFFIX}")
    size = save_recording(out, found.recording)
    (one,) = found.recording.interactions()
    interactions = recording.interactions()
    before = len(interactions[found.taken - 1].body or b"")
    which = "" if len(interactions) == 1 else f"Request {one.request.id}, {found.taken} of {len(interactions)}. "
    shrunk = f"{before} -> {len(one.body or b'')} bytes, {counted(found.tries, 'try')}"
    print(f"{which}{shrunk}. Wrote {sized(size)} in {out}.")
    if found.answered:
        print("  the failure is what was recorded, and comes to any request: to find what the backend refuses, let a")
        print("  command ask it, with --until 'command:...'")
    if not found.minimal:
        print(f"  stopped after {search.MOST_TRIES} tries: a smaller one may exist")
    return 0


def _judge(command: str) -> "Judge":
    """Returns a judge that runs a command with the file of a smaller recording behind its words: it shows what is
    looked for where the command ends with status 0. Raises InvalidRequest for a command that cannot be run."""
    from gateway.core.errors import InvalidRequest
    from gateway.recording.files import save_recording

    def judge(recording: "Recording") -> bool:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"smaller{_SUFFIX}"
            save_recording(file, recording)
            try:
                run = subprocess.run([*words, str(file)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            except OSError as error:
                raise InvalidRequest(f"--until {_COMMAND}{command}: cannot be run: {error.strerror}") from error
        return run.returncode == 0

    try:
        words = shlex.split(command)
    except ValueError as error:
        reason = "it is no command: a quotation mark is not closed, or nothing follows a backslash"
        raise InvalidRequest(f"--until {_COMMAND}{command}: {reason}") from error
    if not words:
        raise InvalidRequest(f"--until {_COMMAND}: the command is missing.")
    return judge


ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "replay": replay,
    "minimise": minimise,
}
