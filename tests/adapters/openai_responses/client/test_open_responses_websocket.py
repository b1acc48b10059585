"""The requests of Open Responses over a WebSocket: the events, what a connection remembers, and what it forgets.

Sources: "WebSocket Transport" in the specification of 2026-04-24, its published schema, and the requests of its
compliance program.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

import openresponses_types
import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.openai_responses.client.open_responses import DEMO, MODELS, event_faults, faults, said
from tests.server.websocket_client import Socket, connected

OUTPUT: Final[Json] = {"type": "function_call_output", "call_id": "call_unknown", "output": "22 degrees"}


@pytest.fixture
async def gateway() -> AsyncIterator[RunningGateway]:
    async with running_gateway(DEMO) as started:
        yield started


async def _completed(socket: Socket, model: str, sent: Json, **fields: Json) -> dict[str, Any]:
    """The response to a request, whose events are those of the schema."""
    socket.create(sent, model=model, **fields)
    events = await socket.answer()
    assert [fault for event in events for fault in event_faults(event)] == []
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    made: dict[str, Any] = events[-1]["response"]
    assert faults(openresponses_types.ResponseResource, made) == []
    assert made["output"] and made["status"] == "completed"
    return made


async def _refused(socket: Socket, model: str, sent: Json, **fields: Json) -> str:
    """The code of a request that fails before its answer begins."""
    socket.create(sent, model=model, **fields)
    [error] = await socket.answer()
    assert faults(openresponses_types.WebSocketErrorEvent, error) == []
    assert error["status"] == 400
    return str(error["error"]["code"])


@pytest.mark.parametrize("model", MODELS)
async def test_responses_follow_one_another_and_one_is_continued(gateway: RunningGateway, model: str) -> None:
    async with connected(gateway) as socket:
        await _completed(socket, model, [said("user", "Count from 1 to 3.")])
        first = await _completed(socket, model, "Remember papaya.")
        second = await _completed(socket, model, "Which word?", previous_response_id=first["id"])
    assert second["previous_response_id"] == first["id"] and second["store"] is False


async def test_what_another_connection_remembers_is_not_found_and_a_new_response_is_made(
    gateway: RunningGateway,
) -> None:
    async with connected(gateway) as socket:
        first = await _completed(socket, "demo-chat", "Remember papaya.")
    async with connected(gateway) as socket:
        code = await _refused(socket, "demo-chat", "Which word?", previous_response_id=first["id"])
        assert code == "previous_response_not_found"
        await _completed(socket, "demo-chat", [said("user", "Begin anew.")])


@pytest.mark.parametrize("model", MODELS)
async def test_a_compaction_begins_a_new_chain(gateway: RunningGateway, model: str) -> None:
    history = [
        said("user", [{"type": "input_text", "text": "Remember papaya."}]),
        said("assistant", [{"type": "output_text", "text": "Yes."}]),
        said("user", [{"type": "input_text", "text": "Shorten this."}]),
    ]
    compacted = await gateway.client.post("/v1/responses/compact", json={"model": model, "input": history})
    assert compacted.status_code == 200, compacted.text
    async with connected(gateway) as socket:
        await _completed(socket, model, [*compacted.json()["output"], said("user", "Go on.")], tools=[])


@pytest.mark.parametrize("model", MODELS)
async def test_an_output_without_its_call_ends_a_chain_where_histories_are_not_repaired(model: str) -> None:
    """The standard lets such a turn fail, and the connection forgets what it continued."""
    async with running_gateway({**DEMO, "repair": "strict"}) as gateway, connected(gateway) as socket:
        first = await _completed(socket, model, "Remember papaya.")
        assert await _refused(socket, model, [OUTPUT], previous_response_id=first["id"]) == "invalid_value"
        code = await _refused(socket, model, "Which word?", previous_response_id=first["id"])
        assert code == "previous_response_not_found"


@pytest.mark.parametrize("model", MODELS)
async def test_by_default_an_output_without_its_call_is_repaired_with_a_notice(
    gateway: RunningGateway, model: str
) -> None:
    async with connected(gateway, "x-dragoman-explain: 1") as socket:
        first = await _completed(socket, model, "Remember papaya.")
        made = await _completed(socket, model, [OUTPUT], previous_response_id=first["id"])
    assert "TOOL_ORPHAN" in [notice["rule"] for notice in made["dragoman"]["diagnostics"]]
