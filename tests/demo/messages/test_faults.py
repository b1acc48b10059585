import asyncio
import json
from typing import Any

import httpx
import pytest

from gateway.demo import DemoBackend, serve_demo
from tests.demo.messages.events import HEADERS, events_of, folded


async def ask(backend: DemoBackend, marker: str, *, stream: bool = True, patience: float = 8) -> httpx.Response:
    asked = {"role": "user", "content": f"count to ten [[demo:{marker}]]"}
    body = {"model": "m", "max_tokens": 100, "messages": [asked], "stream": stream}
    async with httpx.AsyncClient(timeout=patience) as client:
        return await client.post(f"{backend.base_url}/v1/messages", json=body, headers=HEADERS)


async def send(marker: str, *, stream: bool = True) -> httpx.Response:
    async with serve_demo("messages") as backend:
        return await ask(backend, marker, stream=stream)


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
    response = await send(marker, stream=stream)
    assert (response.status_code, response.json()["error"]["type"]) == (status, kind)


async def test_a_status_may_say_when_to_come_back() -> None:
    assert (await send("status code=429 retry_after=7")).headers["retry-after"] == "7"
    assert "retry-after" not in (await send("status")).headers


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
    kinds = [event["type"] for event in events_of((await send(marker)).content)]
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
    assert holds in (await send(marker)).content


@pytest.mark.parametrize(
    "marker",
    [
        *("slow ms=1", "bytewise chunk=5", "comments", "pings ms=1 count=3", "stall seconds=0.01"),
        *("stall_first seconds=0.01", "stall_headers seconds=0.01"),
    ],
)
async def test_a_stream_without_a_loss_adds_up(marker: str) -> None:
    message = folded(events_of((await send(marker)).content))
    assert message["content"] == [{"type": "text", "text": "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"}]
    assert message["stop_reason"] == "end_turn"


async def test_answers_that_are_no_answers() -> None:
    page, empty, moved = [await send(name) for name in ("html", "empty", "redirect")]
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html")
    assert (empty.status_code, empty.content) == (200, b"")
    assert (moved.status_code, moved.headers["location"]) == (302, "http://127.0.0.1:9/stolen")


@pytest.mark.parametrize("marker", ["disconnect", "disconnect how=reset", "disconnect_first"])
@pytest.mark.parametrize("stream", [True, False])
async def test_broken_connections(marker: str, stream: bool) -> None:
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        await send(marker, stream=stream)


async def test_one_object_can_be_cut_too() -> None:
    with pytest.raises(json.JSONDecodeError):
        (await send("truncated", stream=False)).json()
    whole: Any = (await send("slow ms=1", stream=False)).json()
    assert whole["stop_reason"] == "end_turn"


@pytest.mark.parametrize("marker", ["stall", "stall_first", "stall_headers", "held_open", "slow ms=500"])
async def test_a_client_that_leaves_is_counted(marker: str) -> None:
    async with serve_demo("messages") as backend:
        with pytest.raises(httpx.ReadTimeout):
            await asyncio.wait_for(ask(backend, marker, patience=0.1), 8)
        await asyncio.wait_for(backend.idle(), 8)
        assert backend.aborted == 1
