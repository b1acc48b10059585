"""Runs `dragoman config`: checks the settings file, or prints its JSON Schema."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gateway.commands import config_check

HELP: Final = "check the settings file, or print its JSON Schema"
SCHEMA_FILE: Final = "settings.schema.json"


def add_parsers(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of each action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="report every error of the settings file at once, and what is suspicious")
    check.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        default=Path(environ.get("DRAGOMAN_SETTINGS") or "settings.json"),
        help="the settings file (DRAGOMAN_SETTINGS; default settings.json)",
    )
    check.add_argument("--json", action="store_true", help="print the report as JSON")
    check.add_argument("--strict", action="store_true", help="exit with status 1 for a warning, too")
    actions.add_parser("schema", help="print the JSON Schema of the settings file, for editors")


def run(options: argparse.Namespace) -> int:
    """Runs one action. Raises SettingsError for a file that cannot be read."""
    return _ACTIONS[options.action](options)


def _schema(options: argparse.Namespace) -> int:
    from importlib.resources import files

    print(files("gateway.settings").joinpath(SCHEMA_FILE).read_text(encoding="utf-8"), end="")
    return 0


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {"check": config_check.run, "schema": _schema}
