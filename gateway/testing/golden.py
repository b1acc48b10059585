"""A golden folder in, its scenario as a value out.

A folder holds `scenario.toml` (what it shows, which adapter), `request.json` (what the client posts) and
`backend_wire.*` (what the backend answers). Expected beside them: `backend_request.txt`, `openai_stream.txt`,
`openai_completion.txt` and `notices.txt`.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from gateway.policy import Policy

# How a wire that was written down for people becomes bytes again, by the ending of its file.
WireReaders: TypeAlias = Mapping[str, Callable[[str], bytes]]


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """scenario.toml. `status` and `headers` are those of the backend's answer."""

    purpose: str
    adapter: str
    options: Mapping[str, Any] = {}  # Any: msgspec cannot resolve a type that names itself in another module
    policy: Policy = Policy()
    status: int = 200
    headers: Mapping[str, str] = {}


class Golden(msgspec.Struct, frozen=True):
    """One folder, read."""

    folder: Path
    scenario: Scenario
    request: bytes
    wire: bytes

    def __str__(self) -> str:
        return self.folder.name


def read_golden(folder: Path, readers: WireReaders) -> Golden:
    """One folder. A wire whose ending has no reader is taken as it is."""
    scenario = msgspec.convert(tomllib.loads((folder / "scenario.toml").read_text(encoding="utf-8")), Scenario)
    (wire,) = folder.glob("backend_wire.*")
    read = readers.get(wire.suffix)
    content = wire.read_bytes()
    return Golden(
        folder, scenario, (folder / "request.json").read_bytes(), content if read is None else read(content.decode())
    )


def read_all(root: Path, readers: WireReaders) -> list[Golden]:
    """Every folder below `root`, in order of their names."""
    return [read_golden(path.parent, readers) for path in sorted(root.glob("*/scenario.toml"))]
