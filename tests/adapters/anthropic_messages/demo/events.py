"""A strict reader of the Messages stream, written without the code that writes it."""

import json
from typing import Any, Final

HEADERS: Final = {"anthropic-version": "2023-06-01", "content-type": "application/json"}


def events_of(wire: bytes) -> list[Any]:
    """The events of a stream; each has a name, which is its type, and one line of data."""
    events = []
    for paragraph in wire.decode("utf-8", "replace").split("\n\n"):
        lines = [line for line in paragraph.split("\n") if line and not line.startswith(":")]
        if lines:
            name, data = lines
            event = json.loads(data.removeprefix("data: "))
            assert name == f"event: {event['type']}"
            events.append(event)
    return events


# The field of a block that each type of delta continues.
_CONTINUES: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}


def folded(events: list[Any]) -> Any:
    """The message that a stream adds up to. Fails for events out of order."""
    first, *events = [event for event in events if event["type"] != "ping"]
    assert first["type"] == "message_start"
    message = first["message"]
    assert (message["content"], message["stop_reason"]) == ([], None)
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    opened = False
    for event in events[:-2]:
        if event["type"] == "content_block_start":
            assert not opened and event["index"] == len(message["content"])
            opened, written = True, ""
            message["content"].append(event["content_block"])
        else:
            assert opened and event["index"] == len(message["content"]) - 1
            block = message["content"][-1]
            if event["type"] == "content_block_delta":
                delta = event["delta"]
                kind, field = _CONTINUES[delta["type"]]
                assert block["type"] == kind
                if kind == "tool_use":
                    written += delta[field]
                else:
                    block[field] += delta[field]
            else:
                assert event["type"] == "content_block_stop"
                opened = False
                if block["type"] == "tool_use":
                    block["input"] = json.loads(written or "{}")
    assert not opened
    message |= events[-2]["delta"]
    message["usage"] |= events[-2]["usage"]
    return message
