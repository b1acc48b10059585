"""CHANGELOG.md -> the notes of a release on standard output: `changelog.py TAG`.

It is the gate of a release, and fails for a tag that is not the version of pyproject.toml, for a version without a
dated section, for a section without an entry, and while entries are left under "Unreleased".
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HEADING = re.compile(r"^## \[([^]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.M)
ENTRY = re.compile(r"^- \S", re.M)


class Section(NamedTuple):
    """One version of the changelog: `date` is empty where there is none."""

    date: str
    text: str


def sections(changelog: str) -> dict[str, Section]:
    """Returns the sections by version, in the order of the file."""
    _, *parts = HEADING.split(changelog)
    return {name: Section(date or "", text.strip()) for name, date, text in zip(*[iter(parts)] * 3, strict=True)}


def notes(tag: str, version: str, changelog: str) -> str:
    """Returns the entries of the version. Raises ValueError where the release is not ready."""
    if tag != f"v{version}":
        raise ValueError(f"the tag {tag} is not v{version}, the version of pyproject.toml")
    found = sections(changelog)
    section = found.get(version, Section("", ""))
    if not section.date:
        raise ValueError(f'CHANGELOG.md has no section "## [{version}] - YYYY-MM-DD"')
    if not ENTRY.search(section.text):
        raise ValueError(f"the section {version} of CHANGELOG.md has no entry")
    if ENTRY.search(found.get("Unreleased", section._replace(text="")).text):
        raise ValueError(f'CHANGELOG.md has entries under "Unreleased": move them to {version}')
    if next(name for name in found if name != "Unreleased") != version:
        raise ValueError(f"{version} is not the first version in CHANGELOG.md")
    return section.text


def main(tag: str) -> None:
    """Prints the notes. Exits with a message where the release is not ready."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    try:
        sys.stdout.write(notes(tag, version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) + "\n")
    except ValueError as error:
        sys.exit(f"changelog: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
