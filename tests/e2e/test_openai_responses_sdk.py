"""The unchanged official OpenAI SDK over Responses, against every wire: its stream helper checks the grammar."""

from collections.abc import AsyncIterator
from typing import Any, Final

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.e2e.dialect_wires import CHAT, WIRES, Wire, WireGateway, wire_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER: Final[Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
PATCH: Final[Any] = {"type": "custom", "name": "apply_patch", "description": "Apply a patch"}
LONG: Final = "Tell me a long story about a gateway"

# A Warp backend cannot be forced to call a tool, and refuses the choice.
FORCED: Final = tuple(wire for wire in WIRES if wire.entry["adapter"] != "warp")

wires = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[WireGateway]:
    async with wire_gateway() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(gateway: WireGateway) -> AsyncIterator[AsyncOpenAI]:
    base_url = f"{gateway.gateway.base_url}/v1"
    async with AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0) as opened:
        yield opened


@wires
async def test_a_response_is_read(client: AsyncOpenAI, wire: Wire) -> None:
    response = await client.responses.create(model=wire.name, input="Hello", instructions="Be brief.")
    assert response.output_text and response.status == "completed"
    assert response.usage is not None and response.usage.total_tokens > 0


@wires
async def test_a_streamed_loop_of_parallel_calls_ends_with_their_results(client: AsyncOpenAI, wire: Wire) -> None:
    history: list[Any] = [{"role": "user", "content": "Think. Weather in Rome and Paris?"}]
    async with client.responses.stream(model=wire.name, input=history, tools=[WEATHER]) as stream:
        final = await stream.get_final_response()
    calls = [item for item in final.output if item.type == "function_call"]
    assert [call.arguments.replace(" ", "") for call in calls] == ['{"city":"Rome"}', '{"city":"Paris"}']
    history += [item.model_dump() for item in final.output]
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"{n} degrees"}
        for n, call in enumerate(calls)
    ]
    history += reversed(outputs)
    response = await client.responses.create(model=wire.name, input=history, tools=[WEATHER])
    assert "0 degrees" in response.output_text and "1 degrees" in response.output_text


@pytest.mark.parametrize("wire", FORCED, ids=lambda wire: wire.name)
async def test_the_input_of_a_custom_tool_is_free_text(client: AsyncOpenAI, wire: Wire) -> None:
    forced: Any = {"type": "custom", "name": "apply_patch"}
    question = "Use apply_patch now"
    async with client.responses.stream(model=wire.name, input=question, tools=[PATCH], tool_choice=forced) as stream:
        final = await stream.get_final_response()
    (call,) = [item for item in final.output if item.type == "custom_tool_call"]
    assert call.name == "apply_patch" and call.input and not call.input.startswith("{")


async def test_an_answer_in_a_schema_is_parsed(client: AsyncOpenAI) -> None:
    class City(BaseModel):
        name: str

    parsed = await client.responses.parse(model=CHAT.name, input="Name a city.", text_format=City)
    assert isinstance(parsed.output_parsed, City)


@wires
async def test_tokens_are_counted_without_an_answer(client: AsyncOpenAI, wire: Wire) -> None:
    short = await client.responses.input_tokens.count(model=wire.name, input="Hello")
    long = await client.responses.input_tokens.count(model=wire.name, input="Hello " * 100, tools=[WEATHER])
    assert 0 < short.input_tokens < long.input_tokens


@wires
async def test_a_failure_before_the_answer_has_its_class(client: AsyncOpenAI, wire: Wire) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        async with client.responses.stream(model=wire.name, input=f"Hello {wire.fault('early')}") as stream:
            await stream.until_done()
    assert caught.value.status_code >= 500


@wires
async def test_a_failure_within_the_answer_raises(client: AsyncOpenAI, wire: Wire) -> None:
    text = ""
    with pytest.raises(openai.APIError):
        async with client.responses.stream(model=wire.name, input=f"{LONG} {wire.fault('late')}") as stream:
            async for event in stream:
                text += event.delta if event.type == "response.output_text.delta" else ""
    assert text


async def test_what_needs_a_store_is_refused(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(model=CHAT.name, input="Hello", previous_response_id="resp_1")
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
    for refused in (
        client.responses.retrieve("resp_1"),
        client.responses.cancel("resp_1"),
        client.responses.delete("resp_1"),
    ):
        with pytest.raises(openai.NotFoundError):
            await refused
    with pytest.raises(openai.NotFoundError):
        await client.responses.input_items.list("resp_1")
