"""A model that writes a compaction slowly: the client sees signs of life in its own form, no deadline of the request
ends the work, and the compaction's own deadline leaves what needs no model."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.server.api import endpoint
from gateway.server.upstream.deadlines import TICK_S
from tests.server.summaries.test_compaction import TRIGGER, Client, client, items
from tests.server.summaries.test_compaction_blocks import HEADERS, SUMMARIZE, edit, history

QUICK: Final[dict[str, Json]] = {"first_event_gate_s": TICK_S, "sse_ping_s": TICK_S, "write_timeout_s": 2 * TICK_S}
SIGNS: Final = 6
MESSAGES: Final[dict[str, dict[str, Json]]] = {
    "alone": {"compaction": SUMMARIZE},
    "before": {"context_management": edit()},
}


@asynccontextmanager
async def slow(**settings: Any) -> AsyncIterator[Client]:
    """A client whose compactions are not written before the gate of the model is set."""
    async with client(server=QUICK, **settings) as one:
        one.model.gate.clear()
        try:
            yield one
        finally:
            one.model.gate.set()


async def lines_of(one: Client, path: str, body: dict[str, Any], sign: str) -> list[str]:
    """The lines of a stream; the model writes once the client has seen some signs of life."""
    found: list[str] = []
    asked = one.gateway.client.stream("POST", path, json={"model": "m", "stream": True, **body}, headers=HEADERS)
    async with asyncio.timeout(30), asked as response:
        async for line in response.aiter_lines():
            found.append(line)
            if found.count(sign) == SIGNS:
                one.model.gate.set()
    return found


async def until(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not seen():
        assert time.monotonic() < end
        await asyncio.sleep(TICK_S / 10)


@pytest.mark.parametrize("form", MESSAGES)
async def test_a_client_of_messages_gets_pings_meanwhile(form: str) -> None:
    async with slow() as one:
        body = {"max_tokens": 9, "messages": history(), **MESSAGES[form]}
        lines = await lines_of(one, "/v1/messages", body, "event: ping")
        assert lines.count("event: ping") >= SIGNS and "event: message_stop" in lines
        assert not any(line.startswith(":") for line in lines)
        assert (
            lines.index("event: message_start") < lines.index("event: ping") < lines.index("event: content_block_start")
        )


async def test_a_client_of_responses_gets_events_meanwhile() -> None:
    async with slow() as one:
        body = {"input": [*items(), TRIGGER], "store": False}
        lines = await lines_of(one, "/v1/responses", body, "event: response.in_progress")
        assert not any(line.startswith(":") for line in lines)
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert [event["sequence_number"] for event in events] == [*range(len(events))]
        done = [event["item"]["type"] for event in events if event["type"] == "response.output_item.done"]
        assert done == ["compaction"] and events[-1]["type"] == "response.completed"


@pytest.mark.parametrize("form", MESSAGES)
async def test_no_deadline_of_the_request_ends_it(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # It stands for two minutes, and the deadline of the compaction for a longer one.
    monkeypatch.setattr(endpoint, "BODY_S", 2 * TICK_S)
    async with slow(deadline_s=10 * TICK_S) as one:
        body = {"model": "m", "max_tokens": 9, "messages": history(), **MESSAGES[form]}
        response = await one.gateway.client.post("/v1/messages", json=body, headers=HEADERS)
        assert response.status_code == 200, response.text
        assert response.json()["content"][0]["type"] == "compaction"
        assert "COMPACTION_UNWRITTEN" in one.rules(response)


async def test_a_client_that_has_gone_ends_the_work() -> None:
    async with slow() as one:
        body = {"model": "m", "stream": True, "input": [*items(), TRIGGER]}
        async with one.gateway.client.stream("POST", "/v1/responses", json=body) as response:
            async for _ in response.aiter_lines():
                break
        await until(lambda: not one.gateway.app.gateway_state.scheduler.size)
