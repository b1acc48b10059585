"""Builds what OpenAI's APIs have in common: the list of models, errors, and the faults that refuse a request."""

from collections.abc import Iterable
from typing import Final

from gateway.core.conversation import Json
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import instead, status_fault
from gateway.demo.player.playback import json_answer

# The time is constant, so that the same request gets the same bytes.
CREATED: Final = 1_767_225_600
_QUOTA: Final = "You exceeded your current quota, please check your plan and billing details."


def model_list(names: Iterable[str]) -> Json:
    """Returns the list of these models."""
    listed: list[Json] = [{"id": name, "object": "model", "created": CREATED, "owned_by": "demo"} for name in names]
    return {"object": "list", "data": listed}


def error_body(message: str, kind: str, code: str | None = None, param: str | None = None) -> dict[str, Json]:
    """Builds the error object."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refusals(too_long: str, param: str) -> dict[str, Fault[object]]:
    """Returns the faults that refuse a request, with the words for one that is too long and the field with its text."""
    quota = error_body(_QUOTA, "insufficient_quota", "insufficient_quota")
    length = error_body(too_long, "invalid_request_error", "context_length_exceeded", param)
    return {
        "status": status_fault(_status, error_code=""),
        "quota": instead("429 insufficient_quota", "quota", json_answer(quota, 429)),
        "context_length": instead("400 context_length_exceeded", "400", json_answer(length, 400)),
    }


def _status(code: int, text: str, options: Options) -> Json:
    kind = {429: "rate_limit_error", 400: "invalid_request_error"}.get(code, "server_error")
    return error_body(text, kind, options["error_code"] or None)
