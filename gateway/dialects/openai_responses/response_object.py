"""Builds the response object: its state, and the request's fields that it repeats."""

from collections.abc import Mapping
from typing import Final

from gateway.core.conversation import Json, JsonObject
from gateway.dialects.base import AnswerHead

# All fields of the object in the published schema of Open Responses, with their values where the request has none.
_REPEATED: Final[Mapping[str, Json]] = {
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "reasoning": {"effort": None, "summary": None},
    "max_output_tokens": None,
    "max_tool_calls": None,
    "service_tier": None,
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
}
# Objects in which the request may leave fields out.
_COMPLETED: Final = ("text", "reasoning")
# What the gateway does not do, whatever the request says.
_NOT_DONE: Final[Mapping[str, Json]] = {"previous_response_id": None, "store": False, "background": False}
_STATE: Final[Mapping[str, Json]] = {
    "completed_at": None,
    "incomplete_details": None,
    "error": None,
    "output": [],
    "usage": None,
}


def response_base(head: AnswerHead, asked: JsonObject) -> dict[str, Json]:
    """Returns the object of an answer that has just begun. `asked` are the fields of the request."""
    repeated = {name: default if (value := asked.get(name)) is None else value for name, default in _REPEATED.items()}
    for name in _COMPLETED:
        value, default = repeated[name], _REPEATED[name]
        if isinstance(value, dict) and isinstance(default, dict):
            repeated[name] = default | {key: field for key, field in value.items() if field is not None}
    return {
        "id": f"resp_{head.unique}",
        "object": "response",
        "created_at": head.created,
        "status": "in_progress",
        "model": head.model,
        **_STATE,
        **repeated,
        **_NOT_DONE,
    }
