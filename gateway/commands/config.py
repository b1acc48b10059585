"""Runs `dragoman config`: checks the settings file, shows what it sets, or prints its JSON Schema."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gateway.commands import config_check, config_show
from gateway.commands.parser import add_settings

HELP: Final = "check the settings file, show what it sets, or print its JSON Schema"
SCHEMA_FILE: Final = "settings.schema.json"


def add_parsers(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of each action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="report every error of the settings file at once, and what is suspicious")
    named = check.add_mutually_exclusive_group()
    named.add_argument("file", metavar="FILE", nargs="?", type=Path, help="the same as --settings FILE")
    add_settings(named, environ)
    check.add_argument("--insecure-no-key", action="store_true", help="check for a start with this option")
    check.add_argument("--json", action="store_true", help="print the report as JSON")
    check.add_argument("--strict", action="store_true", help="exit with status 1 for a warning, too")
    show = actions.add_parser("show", help="show the effective settings, and where each value comes from")
    show.add_argument("path", metavar="PATH", nargs="?", help="only this key, or those below it, such as models.qwen")
    add_settings(show, environ)
    show.add_argument("--running", action="store_true", help="show where a running gateway differs from the file")
    show.add_argument("--url", help="the running gateway (default the address of the settings)")
    show.add_argument("--host", help="the address, as for serve")
    show.add_argument("--port", help="the port, as for serve (DRAGOMAN_PORT)")
    show.add_argument("--workers", help="the number of serving processes, as for serve (DRAGOMAN_WORKERS)")
    show.add_argument("--json", action="store_true", help="print the values as JSON")
    actions.add_parser("schema", help="print the JSON Schema of the settings file, for editors")


def run(options: argparse.Namespace) -> int:
    """Runs one action. Raises SettingsError for a file that cannot be read."""
    return _ACTIONS[options.action](options)


def _schema(options: argparse.Namespace) -> int:
    from importlib.resources import files

    print(files("gateway.settings").joinpath(SCHEMA_FILE).read_text(encoding="utf-8"), end="")
    return 0


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "check": config_check.run,
    "show": config_show.run,
    "schema": _schema,
}
