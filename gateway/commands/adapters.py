"""Runs `dragoman adapters` and `dragoman dialects`: lists the names that the installed packages give, and their own."""

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.registry import Named

HELPS: Final = {
    "adapters": "list the names of adapters, and the packages that they are from",
    "dialects": "list the dialects that are served, and the packages that they are from",
}


def run(options: argparse.Namespace) -> int:
    """Prints a line for each name. Raises SettingsError where two packages give the same name."""
    from gateway.registry import named_adapters, named_dialects

    listed = named_adapters() if options.command == "adapters" else named_dialects()
    rows = [(one.name, one.package or "built in", _described(one)) for one in listed]
    name_width, package_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    for name, package, described in rows:
        print(f"{name:{name_width}}  {package:{package_width}}  {described}")
    return 0


def _described(one: "Named") -> str:
    return one.value if one.used else f"{one.value} (not used: the name is built in)"
