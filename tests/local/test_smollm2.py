"""The official OpenAI SDK before the gateway, and behind it a real model that knows nothing of tools.

A model of this size says many things; what is held here is the form of what arrives, never its wording.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageFunctionToolCall

from gateway.local import MODEL, RAW, LocalModel, settings_for_model
from gateway.testing.gateway import running_gateway
from tests.local.prompts import PROMPTS, SCHEMAS, TOOLS, check_call

pytestmark = [pytest.mark.local, pytest.mark.asyncio(loop_scope="module")]

# The SDK's own types for messages are dictionaries of many shapes.
Messages = list[Any]
BOTH: Final = pytest.mark.parametrize("model", [MODEL, RAW])
HELLO: Final = "Tell me a short story about a cat and a dog."


class Desk:
    """A client of the SDK, the gateway that it talks to, and the model server behind that."""

    def __init__(self, client: AsyncOpenAI, server: httpx.AsyncClient) -> None:
        self.client = client
        self.server = server

    async def ask(self, messages: Messages | str, **fields: Any) -> ChatCompletion:
        asked: Messages = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        answer = await self.client.chat.completions.create(
            messages=asked, **{"model": RAW, "temperature": 0, "max_tokens": 120, **fields}
        )
        assert isinstance(answer, ChatCompletion)
        return answer

    async def busy(self) -> bool:
        """Whether the model server is at work on an answer."""
        (slot,) = (await self.server.get("/slots")).raise_for_status().json()
        assert isinstance(slot["is_processing"], bool)
        return slot["is_processing"]

    async def counted(self) -> tuple[int, int]:
        """How many tokens the model server has read and written so far, by its own count."""
        lines = (await self.server.get("/metrics")).raise_for_status().text.splitlines()
        count = {name: float(value) for name, _, value in (line.partition(" ") for line in lines if line[0] != "#")}
        read = count["llamacpp:prompt_tokens_total"] + count["llamacpp:prompt_tokens_cached_total"]
        return int(read), int(count["llamacpp:tokens_predicted_total"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(model_server: LocalModel) -> AsyncIterator[Desk]:
    async with (
        running_gateway(settings_for_model(model_server.base_url)) as gateway,
        AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key="unused", max_retries=0, timeout=120) as client,
        httpx.AsyncClient(base_url=model_server.base_url, trust_env=False, timeout=30) as server,
    ):
        yield Desk(client, server)


def only_call(answer: ChatCompletion) -> ChatCompletionMessageFunctionToolCall:
    """The first call of an answer that has at least one."""
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    call = choice.message.tool_calls[0]
    assert call.type == "function" and call.id
    return call


@BOTH
async def test_an_answer_is_streamed(desk: Desk, model: str) -> None:
    stream = await desk.client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": HELLO}],
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=40,
    )
    chunks = [chunk async for chunk in stream]
    *told, last = chunks
    pieces = [chunk.choices[0].delta.content for chunk in told if chunk.choices[0].delta.content]
    assert len(pieces) > 5
    assert "".join(pieces).strip()
    assert [chunk.choices[0].finish_reason for chunk in told if chunk.choices[0].finish_reason] in (
        ["stop"],
        ["length"],
    )
    assert last.choices == [] and last.usage is not None and last.usage.completion_tokens <= 40


async def test_a_limit_that_was_reached_is_told(desk: Desk) -> None:
    answer = await desk.ask(HELLO, max_tokens=5)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None and answer.usage.completion_tokens == 5


@pytest.mark.parametrize(
    ("model", "prompt"), [(RAW, each) for each in PROMPTS] + [(MODEL, each) for each in PROMPTS[::3]]
)
async def test_a_required_call_is_a_valid_call(desk: Desk, model: str, prompt: str) -> None:
    call = only_call(await desk.ask(prompt, model=model, tools=TOOLS, tool_choice="required"))
    check_call(call.function.name, call.function.arguments)


@pytest.mark.parametrize(("number", "prompt"), list(enumerate(PROMPTS)))
async def test_a_named_call_is_a_valid_call_of_that_function(desk: Desk, number: int, prompt: str) -> None:
    # Not the function that the question is about; in runs, so that the server reads the tools from its cache.
    name = list(SCHEMAS)[::-1][number * len(SCHEMAS) // len(PROMPTS)]
    call = only_call(await desk.ask(prompt, tools=TOOLS, tool_choice={"type": "function", "function": {"name": name}}))
    assert call.function.name == name
    check_call(name, call.function.arguments)


async def test_a_streamed_call_is_the_same_as_a_whole_one(desk: Desk) -> None:
    whole = only_call(await desk.ask(PROMPTS[0], tools=TOOLS, tool_choice="required"))
    async with desk.client.chat.completions.stream(
        model=RAW,
        messages=[{"role": "user", "content": PROMPTS[0]}],
        tools=TOOLS,
        tool_choice="required",
        temperature=0,
        max_tokens=120,
    ) as stream:
        streamed = only_call(await stream.get_final_completion())
    check_call(streamed.function.name, streamed.function.arguments)
    assert streamed.function.name == whole.function.name


@pytest.mark.parametrize(("model", "tool_choice"), [(RAW, "none"), (RAW, "auto"), (MODEL, "auto")])
async def test_after_the_result_comes_an_answer(desk: Desk, model: str, tool_choice: str) -> None:
    question = {"role": "user", "content": PROMPTS[0]}
    first = await desk.ask([question], model=model, tools=TOOLS, tool_choice="required")
    call = only_call(first)
    result = {"role": "tool", "tool_call_id": call.id, "content": '{"forecast": "sunny, 24 degrees"}'}
    answer = await desk.ask(
        [question, first.choices[0].message, result], model=model, tools=TOOLS, tool_choice=tool_choice, max_tokens=60
    )
    (choice,) = answer.choices
    if tool_choice == "auto" and choice.message.tool_calls:
        # A model of this size may well ask again.
        assert all(call.type == "function" and call.function.name in SCHEMAS for call in choice.message.tool_calls)
        return
    assert not choice.message.tool_calls
    assert choice.finish_reason in ("stop", "length")
    assert choice.message.content and choice.message.content.strip()


@pytest.mark.parametrize(("model", "stop"), [(RAW, " "), (RAW, ["\n\n", ".", "a"]), (MODEL, "e")])
async def test_stop_ends_the_answer_and_is_no_part_of_it(desk: Desk, model: str, stop: str | list[str]) -> None:
    answer = await desk.ask(HELLO, model=model, stop=stop)
    assert answer.choices[0].finish_reason == "stop"
    content = answer.choices[0].message.content or ""
    assert not [word for word in ([stop] if isinstance(stop, str) else stop) if word in content]
    assert answer.usage is not None and answer.usage.completion_tokens < 120


@BOTH
async def test_usage_is_what_the_server_counted(desk: Desk, model: str) -> None:
    read, written = await desk.counted()
    answer = await desk.ask("How are you today?", model=model, max_tokens=20)
    assert answer.usage is not None
    assert await desk.counted() == (read + answer.usage.prompt_tokens, written + answer.usage.completion_tokens)
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


async def test_the_server_stops_when_the_client_leaves(desk: Desk) -> None:
    stream = await desk.client.chat.completions.create(
        model=RAW,
        messages=[{"role": "user", "content": "Write a very long story."}],
        stream=True,
        max_tokens=2000,
    )
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    assert await desk.busy()
    await stream.close()
    left = time.monotonic()
    while await desk.busy():  # noqa: ASYNC110 (another process has no event for it)
        await asyncio.sleep(0.01)
    assert time.monotonic() - left < 10


@BOTH
async def test_a_context_that_overflows_is_the_clients_to_mend(desk: Desk, model: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        await desk.ask("word " * 6000, model=model)
    assert raised.value.code == "context_length_exceeded"
    assert raised.value.type == "invalid_request_error"
