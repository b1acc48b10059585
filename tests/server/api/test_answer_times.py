"""The times of an answer, as a client of Ollama's API reads them, over real sockets."""

import asyncio
import json
from typing import Any, Final

import pytest

from tests.server.backend import END, HEAD, Connection, events
from tests.server.conftest import Start

DURATIONS: Final = ("load_duration", "prompt_eval_duration", "eval_duration")


async def slowly(connection: Connection) -> None:
    """Waits as long as a clock needs to show that it has."""
    await asyncio.sleep(0.02)
    await connection.send(HEAD, events("text Hello", "finish"), END)


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
@pytest.mark.parametrize("stream", [False, True])
async def test_each_part_of_an_answer_has_its_time(start: Start, path: str, *, stream: bool) -> None:
    gateway, _ = await start(slowly)
    asked = {"messages": [{"role": "user", "content": "x"}]} if path == "/api/chat" else {"prompt": "x"}
    response = await gateway.client.post(path, json={"model": "m", "stream": stream, **asked})
    lines: list[dict[str, Any]] = [json.loads(line) for line in response.text.splitlines()]
    last = lines[-1]
    assert last["done"] is True
    assert all(isinstance(last[name], int) and last[name] > 0 for name in DURATIONS)
    assert last["total_duration"] == sum(last[name] for name in DURATIONS)
    # In nanoseconds: the backend has waited for 20 ms before its first event.
    assert last["prompt_eval_duration"] > 10_000_000
    assert not [line for line in lines[:-1] if "total_duration" in line]


async def test_a_request_without_an_answer_has_times_too(start: Start) -> None:
    gateway, backend = await start(slowly)
    loaded = (await gateway.client.post("/api/generate", json={"model": "m"})).json()
    assert loaded["done_reason"] == "load"
    assert loaded["total_duration"] == sum(loaded[name] for name in DURATIONS)
    assert not backend.seen
