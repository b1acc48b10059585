"""Reads docs/clients.md: the files to write and the commands to run."""

import re
from typing import Final

import msgspec

from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
_SECTION: Final = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.M | re.S)
_FILE: Final = re.compile(r"^`~/(\S+)`:\n\n```\w+\n(.*?)^```$", re.M | re.S)
_COMMANDS: Final = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


class Advice(msgspec.Struct, frozen=True):
    """What the page says about one client: files below the home folder, and the commands of a shell."""

    files: dict[str, str]
    commands: str


def advice() -> dict[str, Advice]:
    """Every section of the page, by its heading."""
    return {
        name: Advice(dict(_FILE.findall(text)), "".join(_COMMANDS.findall(text)))
        for name, text in _SECTION.findall(PAGE)
    }
