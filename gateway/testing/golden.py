"""Reads a golden folder as a scenario value.

A folder holds `scenario.toml` (its purpose, its adapter), `request.json` (the client's request) and
`backend_wire.*` (the backend's response). Expected beside them: `backend_request.txt`, `client_stream.txt`,
`client_answer.txt` and `notices.txt`.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.registry import DEFAULT_DIALECT

# Convert a wire in a readable form back to bytes, by the suffix of its file.
WireReaders: TypeAlias = Mapping[str, Callable[[str], bytes]]


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of scenario.toml. `dialect` is that of `request.json`, and `target` the path to which it was sent,
    with its query, if the dialect reads more than the body; `status` and `headers` are those of the backend's
    response."""

    purpose: str
    adapter: str
    dialect: str = DEFAULT_DIALECT
    target: str = ""
    options: Mapping[str, Any] = {}  # Any: msgspec cannot resolve a type that names itself in another module
    policy: Policy = Policy()
    status: int = 200
    headers: Mapping[str, str] = {}

    @property
    def head(self) -> RequestHead:
        """The head of the client's request."""
        path, _, query = self.target.partition("?")
        return RequestHead(path, query.encode())


class Golden(msgspec.Struct, frozen=True):
    """The content of one folder."""

    folder: Path
    scenario: Scenario
    request: bytes
    wire: bytes

    def __str__(self) -> str:
        return self.folder.name


def read_golden(folder: Path, readers: WireReaders) -> Golden:
    """Reads one folder. A wire whose suffix has no reader is used unchanged."""
    scenario = msgspec.convert(tomllib.loads((folder / "scenario.toml").read_text(encoding="utf-8")), Scenario)
    (wire,) = folder.glob("backend_wire.*")
    read = readers.get(wire.suffix)
    content = wire.read_bytes()
    return Golden(
        folder, scenario, (folder / "request.json").read_bytes(), content if read is None else read(content.decode())
    )


def read_all(root: Path, readers: WireReaders) -> list[Golden]:
    """Reads every folder below `root`, in order of their names."""
    return [read_golden(path.parent, readers) for path in sorted(root.glob("*/scenario.toml"))]
