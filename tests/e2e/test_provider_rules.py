"""The rules of a provider, over real sockets: what the backend receives from clients of two APIs, and where a stream
ends."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.e2e.answers import read_stream, read_whole

pytestmark = pytest.mark.asyncio(loop_scope="module")

# A model has the name of its backend entry.
MODELS: Final[dict[str, dict[str, Json]]] = {
    "deepseek-v4": {"profile": "deepseek-thinking"},
    "qwen3-32b": {"profile": "qwen"},
    "my-deployment": {"profile": "azure"},
    "gpt-4o": {"profile": "openai"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo() -> AsyncIterator[tuple[RunningGateway, DemoBackend]]:
    async with serve_demo("chat") as backend:
        entries: dict[str, Json] = {
            name: {"adapter": "openai_chat", "base_url": backend.base_url, **entry} for name, entry in MODELS.items()
        }
        models: dict[str, Json] = {name: {"backend": name} for name in MODELS}
        models["my-deployment"] = {"backend": "my-deployment", "base_model": "gpt-5"}
        async with running_gateway({"backends": entries, "models": models}) as gateway:
            yield gateway, backend


def last(backend: DemoBackend) -> dict[str, Any]:
    body = json.loads(backend.requests[-1].body)
    return {name: value for name, value in body.items() if name not in ("messages", "model", "stream")}


@pytest.mark.parametrize(
    ("model", "fields", "expected"),
    [
        ("deepseek-v4", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}, "max_tokens": 99}),
        ("qwen3-32b", {}, {"enable_thinking": False, "max_tokens": 99}),
        ("my-deployment", {"temperature": 0.5}, {"max_completion_tokens": 99}),
        (
            "my-deployment",
            {"output_config": {"effort": "max"}},
            {"max_completion_tokens": 99, "reasoning_effort": "high"},
        ),
    ],
)
async def test_a_client_of_messages(
    demo: tuple[RunningGateway, DemoBackend], model: str, fields: dict[str, Json], expected: dict[str, Json]
) -> None:
    gateway, backend = demo
    body = {"model": model, "max_tokens": 99, "messages": [{"role": "user", "content": "Hello"}], **fields}
    answer = await gateway.client.post("/v1/messages", json=body)
    assert (answer.status_code, last(backend)) == (200, expected)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_fifth_stop_sequence_ends_the_answer_as_well(
    demo: tuple[RunningGateway, DemoBackend], stream: bool
) -> None:
    gateway, backend = demo
    asked: dict[str, Json] = {"model": "gpt-4o", "stream": stream, "messages": [{"role": "user", "content": "Hello"}]}

    async def text(fields: dict[str, Json]) -> str:
        response = await gateway.client.post("/v1/chat/completions", json={**asked, **fields})
        assert response.status_code == 200
        return (read_stream(response) if stream else read_whole(response)).text

    whole = await text({})
    last_word = whole.split()[-1]
    unseen = ["@1", "@2", "@3", "@4"]
    assert await text({"stop": [*unseen, last_word]}) == whole[: whole.index(last_word)]
    assert last(backend)["stop"] == unseen
