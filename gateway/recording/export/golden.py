"""Writes a recorded request as a golden folder: the inputs of a scenario, for the tests of an adapter or a dialect."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.recording.lines import RecordingError
from gateway.recording.recording import Interaction
from gateway.recording.route import policy_fields

# TOML has no null: a limit that nothing reaches.
_NO_LIMIT: Final = 1_000_000_000
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def golden_files(interaction: Interaction) -> dict[str, bytes]:
    """Returns the files by name: `scenario.toml`, `request.json` and the wire of the response. The expected files are
    made by the first run of the tests (`--rewrite-golden`). Raises RecordingError for a request without a route, a body
    or a response."""
    request, route, head, body = interaction.request, interaction.route, interaction.head, interaction.body
    if route is None or head is None or body is None or interaction.gaps:
        raise RecordingError(f"The request {request.id} has no route, no body or no whole response.")
    fields: dict[str, Json] = {
        "purpose": f"Recorded: {'no error' if interaction.end is None else interaction.end.code or 'no error'}.",
        "adapter": route.adapter,
        "dialect": request.dialect,
        "target": request.path,
        "options": dict(route.options),
        "policy": _changed(dict(route.policy), dict(policy_fields(Policy()))),
        "status": head.status,
        "headers": {name: value for name, value in head.headers.items() if name == "content-type"},
    }
    text = "".join(f"{name} = {_toml(value)}\n" for name, value in fields.items())
    wire = b"".join(read.data.content for read in interaction.reads)
    return {"scenario.toml": text.encode(), "request.json": body, f"backend_wire.{_suffix(wire)}": wire}


def _suffix(wire: bytes) -> str:
    if wire.startswith((b"data:", b"event:", b":")):
        return "sse"
    return "json" if wire[:1] in (b"{", b"[") else "bin"


def _changed(value: Mapping[str, Json], usual: Mapping[str, Json]) -> Json:
    """Returns the fields that differ from those of another object."""
    found: dict[str, Json] = {}
    for name, inner in value.items():
        other = usual.get(name)
        if isinstance(inner, dict) and isinstance(other, dict):
            inner, other = _changed(inner, other), {}
        if inner != other:
            found[name] = _NO_LIMIT if inner is None else inner
    return found


def _toml(value: Json) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {_toml(one)}" for name, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # What else there is, is written as in JSON.
    return msgspec.json.encode(_NO_LIMIT if value is None else value).decode()


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else msgspec.json.encode(name).decode()
