"""The unchanged official OpenAI SDK asks for completions: `client.completions.create` over real sockets."""

from collections.abc import AsyncIterator
from typing import Any, Final

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from tests.e2e.dialect_wires import CHAT, wire_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROMPT: Final[dict[str, Any]] = {"model": CHAT.name, "prompt": "Hello", "max_tokens": 200}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[AsyncOpenAI]:
    async with (
        wire_gateway() as wires,
        AsyncOpenAI(base_url=f"{wires.gateway.base_url}/v1", api_key="unused", max_retries=0) as sdk,
    ):
        yield sdk


async def test_an_answer_whole_and_streamed(client: AsyncOpenAI) -> None:
    whole = await client.completions.create(**PROMPT)
    assert whole.object == "text_completion" and whole.id.startswith("cmpl-")
    (choice,) = whole.choices
    assert choice.text and choice.finish_reason == "stop" and whole.usage is not None
    stream = await client.completions.create(**PROMPT, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    assert "".join(piece.text for chunk in chunks for piece in chunk.choices) == choice.text
    assert chunks[-1].usage is not None and not chunks[-1].choices
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


async def test_the_limit_of_the_api_cuts_an_answer(client: AsyncOpenAI) -> None:
    answer = await client.completions.create(model=CHAT.name, prompt="Tell me a long story about a gateway")
    assert answer.choices[0].finish_reason == "length"


@pytest.mark.parametrize("field", ["suffix", "echo", "logprobs", "best_of", "n", "logit_bias"])
async def test_a_refused_field_is_a_bad_request(client: AsyncOpenAI, field: str) -> None:
    values: dict[str, Any] = {"suffix": "x", "echo": True, "logprobs": 1, "best_of": 2, "n": 2, "logit_bias": {"1": 1}}
    with pytest.raises(openai.BadRequestError) as caught:
        await client.completions.create(**PROMPT, **{field: values[field]})
    assert caught.value.param == field


async def test_an_unknown_model_is_not_found(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        await client.completions.create(model="other", prompt="Hello")


async def test_a_failure_in_the_stream_raises(client: AsyncOpenAI) -> None:
    prompt = f"Tell me a long story about a gateway {CHAT.fault('late')}"
    stream = await client.completions.create(model=CHAT.name, prompt=prompt, max_tokens=200, stream=True)
    text = ""
    with pytest.raises(openai.APIError):
        async for chunk in stream:
            text += chunk.choices[0].text
    assert text
