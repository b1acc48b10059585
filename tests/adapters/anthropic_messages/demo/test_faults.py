from typing import Any

import pytest

from tests.adapters.anthropic_messages.demo.events import events_of, folded
from tests.demo.faults.marked import send


@pytest.mark.parametrize(
    ("marker", "status", "kind"),
    [
        ("status", 500, "api_error"),
        ("status code=429", 429, "rate_limit_error"),
        ("status code=402", 402, "billing_error"),
        ("overloaded", 529, "overloaded_error"),
        ("context_length", 400, "invalid_request_error"),
        ("unheard_of", 400, "invalid_request_error"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_error_statuses(marker: str, status: int, kind: str, stream: bool) -> None:
    response = await send("messages", marker, stream=stream)
    assert (response.status_code, response.json()["error"]["type"]) == (status, kind)


@pytest.mark.parametrize(
    ("marker", "last"),
    [
        ("error_first", ["error"]),
        ("error_first type=overloaded_error", ["error"]),
        ("error_event", ["content_block_delta", "error"]),
        ("truncated", ["ping", "content_block_delta"]),
        ("no_stop", ["content_block_stop", "message_delta"]),
        ("no_reason", ["content_block_stop", "message_stop"]),
        ("late", ["message_stop", "content_block_start", "content_block_delta", "content_block_stop"]),
        ("twice", ["message_delta", "message_stop", "message_delta", "message_stop"]),
        ("unknown_events", ["telemetry", "message_delta", "telemetry", "message_stop"]),
    ],
)
async def test_a_stream_with_a_fault_ends_so(marker: str, last: list[str]) -> None:
    kinds = [event["type"] for event in events_of((await send("messages", marker)).content)]
    assert kinds[-len(last) :] == last


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("cut_mid_event", b"event: message_stop\ndata:"),
        ("bad_json", b'data: {"type": "brok\n\n'),
        ("bad_order", b'"index":99'),
        ("bad_utf8", b"(\xff)"),
        ("huge_event mb=0.1", b"x" * 100_000),
        ("redacted", b'"redacted_thinking"'),
        ("server_tool", b'"server_tool_use"'),
        ("pings ms=1 count=3", b'event: ping\ndata: {"type":"ping"}\n\n' * 3),
        ("comments", b": still here"),
    ],
)
async def test_a_stream_with_a_fault_holds_these_bytes(marker: str, holds: bytes) -> None:
    assert holds in (await send("messages", marker)).content


@pytest.mark.parametrize(
    "marker",
    [
        *("slow ms=1", "bytewise chunk=5", "comments", "pings ms=1 count=3", "stall seconds=0.01"),
        *("stall_first seconds=0.01", "stall_headers seconds=0.01"),
    ],
)
async def test_a_stream_without_a_loss_adds_up(marker: str) -> None:
    message = folded(events_of((await send("messages", marker)).content))
    assert message["content"] == [{"type": "text", "text": "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"}]
    assert message["stop_reason"] == "end_turn"


async def test_one_object_can_be_slow_too() -> None:
    whole: Any = (await send("messages", "slow ms=1", stream=False)).json()
    assert whole["stop_reason"] == "end_turn"
