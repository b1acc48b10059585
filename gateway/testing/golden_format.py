"""Formats the outcome of a golden scenario as texts that a person can read and a diff can compare."""

import json

from gateway.core.conversation import Json
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.testing.golden_runner import ScenarioResult


def show(outcome: ScenarioResult) -> dict[str, str]:
    """Return the expected files of the folder by name."""
    return {
        "backend_request.txt": _request(outcome),
        "client_stream.txt": _answer(outcome.stream.decode("utf-8"), outcome),
        "client_answer.txt": _answer(_json(json.loads(outcome.completion)) if outcome.completion else "", outcome),
        "notices.txt": "".join(f"{_notice(notice, outcome.paths)}\n" for notice in outcome.notices),
    }


def _request(outcome: ScenarioResult) -> str:
    request = outcome.request
    if request is None:
        return "Nothing is sent.\n"
    headers = "".join(f"{name}: {value}\n" for name, value in sorted(request.headers.items()))
    return f"{request.method} {request.path}\n{headers}\n{_json(outcome.describe, sort=True)}\n"


def _answer(body: str, outcome: ScenarioResult) -> str:
    error = outcome.error
    if error is None or body:
        return f"HTTP 200\n\n{body.rstrip()}\n"
    headers = "".join(f"{name}: {value}\n" for name, value in sorted(error.headers.items()))
    return f"HTTP {error.status}\n{headers}\n{_json(json.loads(outcome.error_body))}\n"


def _notice(notice: Notice, paths: FieldPaths) -> str:
    place = "" if notice.index is None else f" {paths.turn.format(turn=notice.index)}"
    call = "" if notice.tool_call_id is None else f" {notice.tool_call_id}"
    return f"{notice.level} {notice.stage} {notice.action} {notice.rule}{place}{call}: {notice.detail}"


def _json(value: Json, sort: bool = False) -> str:
    # Protobuf guarantees no order of a map's keys, so a request is shown with its keys sorted.
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=sort)
