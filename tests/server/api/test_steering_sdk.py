"""OpenAI's SDK steers answers of a backend of each kind that speaks slowly. The SDK's own types decide whether an event
is one."""

import json
from typing import Any, Final, cast

import pytest
from openai.resources.responses.responses import AsyncResponsesConnection

from gateway.core.conversation import Json
from gateway.demo.scripted_model.dialogue import Dialogue, PlannedCall, Reply
from tests.server.api.test_websocket_sdk import TOOLS, WIRES, connection

ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "error")
# Held back until its transaction is committed, nothing of an answer is sent before its end.
STREAMED: Final[dict[str, dict[str, Json]]] = {"warp": {"rollback": "stream"}}
WORDS: Final = [f"word{number}" for number in range(400)]


def model(dialogue: Dialogue) -> Reply:
    """Tells a long story, or briefly what it was steered to; looks first where it is told to."""
    seen = [result.text for results in dialogue.rounds for result in results]
    if "look" in dialogue.question and not seen:
        return Reply(text="I look.", calls=(PlannedCall("call_1", "look", {"at": "north " * 40}),))
    return Reply(text=f"brief {' '.join(seen)}" if "brief" in dialogue.question else " ".join(WORDS))


async def until(socket: AsyncResponsesConnection, *kinds: str) -> list[Any]:
    """The events up to the first one of these types, each as the SDK types it."""
    found: list[Any] = []
    async for event in socket:
        found.append(event)
        type(event).model_validate(json.loads(event.to_json()), strict=True)
        if event.type in kinds:
            break
    return found


async def create(socket: AsyncResponsesConnection, **fields: Any) -> None:
    await socket.send(cast(Any, {"type": "response.create", "model": "m", "store": False, "tools": TOOLS, **fields}))


async def steer(socket: AsyncResponsesConnection, answer: str, text: str) -> None:
    await socket.send({"type": "response.steer", "previous_response_id": answer, "input": text})


@pytest.mark.parametrize("wire", WIRES)
async def test_a_slow_answer_is_steered_to_a_brief_one(wire: str) -> None:
    async with connection(wire, model, "slow", **STREAMED.get(wire, {})) as (_, socket):
        await create(socket, input="Tell a story.")
        told = await until(socket, "response.output_text.delta")
        first = told[0].response.id
        await steer(socket, first, "Be brief.")
        ended = (await until(socket, *ENDS))[-1]
        assert (ended.type, ended.response.incomplete_details.reason) == ("response.incomplete", "steered")
        assert ended.response.id == first
        assert " ".join(WORDS).startswith(ended.response.output_text.strip())
        assert ended.response.output_text.strip() != " ".join(WORDS)
        assert ended.response.usage.input_tokens > 0 and ended.response.usage.output_tokens > 0
        following = await until(socket, *ENDS)
        assert following[0].type == "response.created"
        assert following[0].response.previous_response_id == first
        assert following[-1].type == "response.completed"
        assert following[-1].response.output_text.strip() == "brief"
        assert following[-1].response.usage.input_tokens > 0


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_that_has_begun_is_finished_and_its_result_is_waited_for(wire: str) -> None:
    async with connection(wire, model, "slow", **STREAMED.get(wire, {})) as (_, socket):
        await create(socket, input="Do look.")
        kinds = ("response.function_call_arguments.delta", "response.completed")
        told = await until(socket, *kinds)
        first = told[0].response.id
        await steer(socket, first, "Be brief.")
        found = told + ([] if told[-1].type == "response.completed" else await until(socket, "response.completed"))
        [call] = [item for item in found[-1].response.output if item.type == "function_call"]
        assert json.loads(call.arguments) == {"at": "north " * 40}
        [pending] = [event for event in await until(socket, "response.steer.pending") if event.type.endswith("pending")]
        [stub] = pending.required_input
        await create(socket, previous_response_id=first, input=[{**stub.to_dict(), "output": "a wood"}])
        following = await until(socket, *ENDS)
        assert following[-1].type == "response.completed"
