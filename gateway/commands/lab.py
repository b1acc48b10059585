"""Runs `dragoman lab`: lets a client meet events of its protocol, and prints what it survives."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from gateway.commands.parser import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from gateway.demo.lab.event import LabEvent
    from gateway.demo.lab.laboratory import Configure
    from gateway.demo.lab.report import Report
    from gateway.demo.lab.run_client import Place

HELP: Final = "run a client against events of its protocol, and print what it survives"
_LONGEST: Final = 3600
_MOST_JOBS: Final = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument(
        "client_command",
        metavar="COMMAND",
        nargs="*",
        help="the client's command behind --; {base_url}, {model}, {prompt} and {folder} are replaced in it",
    )
    parser.add_argument("--client", help="a client of 'dragoman connect', whose files are written for each run")
    parser.add_argument("--model", default="lab-model", help="the name of the model (default lab-model)")
    parser.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable of each run (repeatable)"
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="only this event, or those that begin so (repeatable)",
    )
    parser.add_argument("--list", action="store_true", help="list the events, and run nothing")
    parser.add_argument("--jobs", type=whole_number(1, _MOST_JOBS), default=2, help="runs at once (default 2)")
    parser.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=whole_number(1, _LONGEST),
        default=180,
        help="the most time of a run (default 180)",
    )
    parser.add_argument(
        "--silence",
        metavar="SECONDS",
        type=whole_number(0, _LONGEST),
        default=60,
        help="the length of a silence (default 60)",
    )
    parser.add_argument("--no-websocket", action="store_true", help="answer the upgrade to a WebSocket with 426")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="the output format")


def run(options: argparse.Namespace) -> int:
    """Runs the command. Raises SettingsError."""
    import msgspec

    from gateway.commands.lab_report import events_text, report_markdown, report_text
    from gateway.core.errors import SettingsError
    from gateway.demo.lab.laboratory import Client, Limits, examine_client

    events = _events(options.only)
    if options.list:
        print(events_text(events), end="")
        return 0
    if not options.client_command:
        raise SettingsError("the client's command is missing: dragoman lab -- COMMAND...")
    if options.silence >= options.time_limit:
        raise SettingsError("--silence must be shorter than --time-limit")
    client = Client(
        options.client or PurePath(options.client_command[0]).name,
        tuple(options.client_command),
        options.model,
        dict(map(_variable, options.env)),
        _configure(options.client, options.model),
        os.environ,
    )
    limits = Limits(options.time_limit, options.silence, options.jobs, not options.no_websocket)
    tell = _progress(options.format)
    # It warns of each write to a client that has left, which is what many events are about.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    report = asyncio.run(_until_terminated(examine_client(client, events, limits, tell)))
    tell("")
    if options.format == "json":
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print((report_text if options.format == "text" else report_markdown)(report), end="")
    return report.status()


async def _until_terminated(examination: "Coroutine[object, object, Report]") -> "Report":
    """Returns the report. A signal that ends this program ends the clients that it has started, too."""
    task = asyncio.current_task()
    assert task is not None
    if sys.platform != "win32":
        for end in (signal.SIGTERM, signal.SIGHUP):
            # nohup has one ignored.
            if signal.getsignal(end) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(end, task.cancel)
    try:
        return await examination
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _events(only: list[str]) -> "tuple[LabEvent, ...]":
    from gateway.demo.lab.events import EVENTS

    names = [event.name for event in EVENTS]
    chosen = {name for wanted in only for name in _named(wanted, names)}
    return tuple(event for event in EVENTS if not only or event.name in chosen)


def _named(wanted: str, names: Sequence[str]) -> Sequence[str]:
    """Returns the name itself, or the names that begin so. Raises SettingsError where there is none."""
    from gateway.core.errors import SettingsError
    from gateway.settings import nearest

    found = [name for name in names if name == wanted] or [name for name in names if name.startswith(wanted)]
    if not found:
        raise SettingsError(f"there is no event {wanted!r}{nearest(wanted, names)}")
    return found


def _variable(text: str) -> tuple[str, str]:
    from gateway.core.errors import SettingsError

    name, equals, value = text.partition("=")
    if not name or not equals:
        raise SettingsError(f"{text!r} is no NAME=VALUE")
    return name, value


def _configure(name: str | None, model: str) -> "Configure":
    """Returns what writes the files of a client of `dragoman connect` into a home folder."""
    from gateway.connect.client import client_names, load_client
    from gateway.connect.config_file import locate, text_of
    from gateway.connect.target import Target
    from gateway.core.errors import SettingsError
    from gateway.demo.lab.run_client import KEY
    from gateway.settings import nearest

    if name is None:
        return lambda place, base_url: {}
    if name not in client_names():
        raise SettingsError(f"there is no client {name!r}{nearest(name, client_names())}")
    client = load_client(name)

    def configure(place: "Place", base_url: str) -> Mapping[str, str]:
        target = Target(base_url, model, (model,), KEY)
        for file in client.files:
            # No variable names another folder in a run, and only its home folder is another one.
            found = locate(file, {})
            path = place.home / found.relative_to(Path.home()) if found.is_absolute() else place.folder / found
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text_of(file, target), encoding="utf-8")
        key = {} if client.key_variable is None else {client.key_variable: KEY}
        return {**key, **{variable: target.fill(value) for variable, value in client.variables.items()}}

    return configure


def _progress(form: str) -> "Callable[[str], None]":
    """Returns the progress display for a person at a terminal; an empty text removes it."""
    if form != "text" or not sys.stderr.isatty():
        return lambda said: None
    return lambda said: print(f"\r\033[K{said}", end="", file=sys.stderr, flush=True)
