"""A golden folder in, its scenario as a value out.

A folder holds `scenario.toml` (what it shows, which adapter), `request.json` (what the client posts) and
`backend_wire.*` (what the backend answers). Expected beside them: `backend_request.txt`, `openai_stream.txt`,
`openai_completion.txt` and `notices.txt`.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.policy import Policy


def show_json(body: bytes) -> str:
    """A JSON body, indented; whatever is not JSON is shown as it is."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body.decode("utf-8", "backslashreplace")


class Form(msgspec.Struct, frozen=True):
    """How the bytes of one kind of backend are written down for people, and read back."""

    show_body: Callable[[bytes], str] = show_json
    read_wire: Callable[[str], bytes] = str.encode


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
    form: Form
    request: bytes
    wire: bytes

    def __str__(self) -> str:
        return self.folder.name


def read_golden(folder: Path, forms: Mapping[str, Form]) -> Golden:
    """One folder. `forms` are keyed by the adapter's import string; the default is JSON out, text in."""
    scenario = msgspec.convert(tomllib.loads((folder / "scenario.toml").read_text(encoding="utf-8")), Scenario)
    form = forms.get(scenario.adapter, Form())
    (wire,) = folder.glob("backend_wire.*")
    text = wire.read_bytes().decode("utf-8")
    return Golden(folder, scenario, form, (folder / "request.json").read_bytes(), form.read_wire(text))


def read_all(root: Path, forms: Mapping[str, Form]) -> list[Golden]:
    """Every folder below `root`, in order of their names."""
    return [read_golden(path.parent, forms) for path in sorted(root.glob("*/scenario.toml"))]
