"""Runs `dragoman connect`: prints or writes the configuration of a client."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.commands.parser import add_settings, settings_if_any

if TYPE_CHECKING:
    from gateway.connect.client import Client, ClientFile
    from gateway.connect.target import Target
    from gateway.discovery.identify import Server

# What `--undo` has done with a file, as it is printed.
_UNDONE: Final = {
    "restored": "restored",
    "removed": "removed, since there was none before",
    "taken out": "it was changed since; what was added is taken out, and what is new stays",
}
HELP: Final = "print or write the configuration of a client"


def add_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("client", metavar="CLIENT", nargs="?", help="the client; without one, all are listed")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="write the client's files; a copy of each is kept")
    action.add_argument(
        "--undo",
        action="store_true",
        help="restore the files as they were before the last --write, or take out what it added",
    )
    parser.add_argument("--model", help="the model to begin with (default the first of the settings)")
    parser.add_argument(
        "--url",
        help="the address of the gateway (default where one answers: that of the settings, or of the last start)",
    )
    add_settings(parser, environ)


def run(options: argparse.Namespace) -> int:
    """Runs the command. Raises SettingsError."""
    from gateway.connect.client import client_names, load_client
    from gateway.core.errors import SettingsError
    from gateway.settings import nearest

    if options.client is None:
        return _list()
    if options.client not in client_names():
        raise SettingsError(f"there is no client {options.client!r}{nearest(options.client, client_names())}")
    client = load_client(options.client)
    if options.undo:
        return _undo(client)
    target, notes = _target(options, os.environ)
    status = _write(options.client, client, target) if options.write else _print(client, target)
    for note in notes:
        print(f"dragoman: {note}", file=sys.stderr)
    return status


def _list() -> int:
    from gateway.connect.client import client_names, load_client

    rows = [("client", "name", "dialect", "files")]
    for name in client_names():
        client = load_client(name)
        rows.append((name, client.title, client.dialect, ", ".join(map(_place, client.files)) or "-"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _target(options: argparse.Namespace, environ: Mapping[str, str]) -> "tuple[Target, Sequence[str]]":
    """Returns the gateway that the client shall ask, and sentences about what answers there."""
    from gateway.connect.target import address_of, settings_target
    from gateway.server.process.noted_address import noted_address
    from gateway.server.state.state_folder import StateFolder
    from gateway.settings import Settings, override_server

    found = settings_if_any(options.settings)
    known, settings = found is not None, found or Settings()
    settings = override_server(settings, None, environ.get("DRAGOMAN_PORT") or None)
    address = address_of(settings, options.url)
    noted = None if options.url is not None else noted_address(StateFolder(environ, settings.state.folder).path)
    server, notes = asyncio.run(_running(address, noted))
    running = () if known or server is None else server.models
    url = options.url if server is None or server.url == address else server.url
    return settings_target(settings, options.model, url, environ, known, running), notes


async def _running(address: str, noted: str | None) -> "tuple[Server | None, Sequence[str]]":
    """Returns the gateway that answers at an address or, where none does, at the one where a gateway of this machine
    was started last; and what a person has to know of it."""
    from gateway.discovery.identify import REMOTE_S, identify
    from gateway.discovery.server_kinds import DRAGOMAN

    server = await identify(address, answer_s=REMOTE_S)
    if server is not None and server.kind is DRAGOMAN:
        return server, ()
    answers = "nothing answers" if server is None else f"what answers is {server.title}, and no gateway,"
    if noted not in (None, address):
        other = await identify(noted, answer_s=REMOTE_S)
        if other is not None and other.kind is DRAGOMAN:
            return other, (f"{answers} at {address}; a gateway listens on {noted}, which is used",)
    return None, (f"{answers} at {address}: start a gateway there ('dragoman serve'), or give its address with --url",)


def _print(client: "Client", target: "Target") -> int:
    from gateway.connect.instructions import instructions

    print(instructions(client, target, map(_place, client.files)), end="")
    return 0


def _write(name: str, client: "Client", target: "Target") -> int:
    from gateway.connect.config_file import apply, locate, plan_change
    from gateway.connect.instructions import remaining
    from gateway.core.errors import SettingsError

    files = _written_files(client)
    try:
        # All are read before the first one is written.
        changes = [plan_change(locate(file, os.environ), file, target) for file in files]
    except SettingsError as error:
        raise SettingsError(f"{error.message}: 'dragoman connect {name}' prints what to enter by hand") from error
    for change in changes:
        backup = apply(change)
        if backup is None:
            print(f"{_shown(change.path)}: nothing to change.")
            continue
        replaced = f" It had other values of {', '.join(change.replaced)}." if change.replaced else ""
        kept = f" A copy of it is {backup.name}." if change.before is not None else ""
        print(f"{_shown(change.path)}: written.{replaced}{kept} 'dragoman connect {name} --undo' restores it.")
    print(f"\n{remaining(client, target)}", end="")
    return 0


def _undo(client: "Client") -> int:
    from gateway.connect.config_file import locate, undo

    for file in _written_files(client):
        path = locate(file, os.environ)
        print(f"{_shown(path)}: {_UNDONE[undo(path)]}.")
    return 0


def _written_files(client: "Client") -> "list[ClientFile]":
    """Returns the files that this command writes. Raises SettingsError where there are none."""
    from gateway.core.errors import SettingsError

    files = [file for file in client.files if not file.by_hand]
    if not files:
        raise SettingsError(f"{client.title} has no file to write: without --write, its configuration is printed")
    return files


def _place(file: "ClientFile") -> str:
    from gateway.connect.config_file import locate

    return _shown(locate(file, os.environ))


def _shown(path: Path) -> str:
    """Returns a path with `~` for the home folder."""
    home = Path("~").expanduser()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
