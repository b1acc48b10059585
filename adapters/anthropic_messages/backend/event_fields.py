"""The fields of the events of a stream. Source: Anthropic's reference of the Messages API."""

from typing import Final

from gateway.adapter import EventFields

EVENT_FIELDS: Final[EventFields] = {
    "": frozenset(
        ["type", "message", "index", "content_block", "delta", "usage", "context_management", "error", "request_id"]
    ),
    "message": frozenset(
        [
            "id",
            "type",
            "role",
            "model",
            "content",
            "stop_reason",
            "stop_sequence",
            "stop_details",
            "usage",
            "container",
            "context_management",
        ]
    ),
    "delta": frozenset(
        [
            "type",
            "text",
            "thinking",
            "signature",
            "partial_json",
            "citation",
            "stop_reason",
            "stop_sequence",
            "stop_details",
            "container",
        ]
    ),
}
