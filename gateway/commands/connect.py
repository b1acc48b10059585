"""Runs `dragoman connect`: prints or writes the configuration of a client."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.connect.client import Client, ClientFile
    from gateway.connect.target import Target

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
    parser.add_argument("--url", help="the address of the gateway (default that of the settings)")
    parser.add_argument(
        "--settings",
        type=Path,
        default=Path(environ.get("DRAGOMAN_SETTINGS") or "settings.json"),
        help="the settings file (DRAGOMAN_SETTINGS; default settings.json)",
    )


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
    target = _target(options, os.environ)
    if options.write:
        return _write(options.client, client, target)
    return _print(client, target)


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


def _target(options: argparse.Namespace, environ: Mapping[str, str]) -> "Target":
    from gateway.connect.target import address_of, settings_target
    from gateway.settings import Settings, load_settings, override_server

    known = options.settings.exists()
    settings = load_settings(options.settings) if known else Settings()
    settings = override_server(settings, None, environ.get("DRAGOMAN_PORT") or None)
    running = () if known else _running_models(address_of(settings, options.url))
    return settings_target(settings, options.model, options.url, environ, known, running)


def _running_models(address: str) -> tuple[str, ...]:
    """Returns the models that a gateway at this address lists, such as `dragoman demo`; none where no gateway is."""
    import asyncio

    from gateway.discovery.identify import identify
    from gateway.discovery.server_kinds import DRAGOMAN

    server = asyncio.run(identify(address))
    return server.models if server is not None and server.kind is DRAGOMAN else ()


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
