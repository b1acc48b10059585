"""Runs `dragoman config`: prints the JSON Schema of the settings file."""

import argparse
from collections.abc import Callable, Mapping
from typing import Final

HELP: Final = "print the JSON Schema of the settings file"
SCHEMA_FILE: Final = "settings.schema.json"


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of each action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("schema", help="print the JSON Schema of the settings file, for editors")


def run(options: argparse.Namespace) -> int:
    """Runs one action. Raises SettingsError for a file that cannot be read."""
    return _ACTIONS[options.action](options)


def _schema(options: argparse.Namespace) -> int:
    from importlib.resources import files

    print(files("gateway.settings").joinpath(SCHEMA_FILE).read_text(encoding="utf-8"), end="")
    return 0


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {"schema": _schema}
