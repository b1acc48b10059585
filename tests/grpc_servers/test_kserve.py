"""The gateway in front of Triton and MLServer, over gRPC and, through Envoy, over gRPC-Web."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec
import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.grpc_servers.envoy import envoy
from tests.grpc_servers.installed import missing, needs
from tests.grpc_servers.mlserver import mlserver
from tests.grpc_servers.server_process import WAIT_S
from tests.grpc_servers.triton import triton, unfit
from tests.promises.wire_gateway import finishes, frames, text_of

pytestmark = [pytest.mark.grpc, pytest.mark.asyncio(loop_scope="module"), needs()]
PRESETS: Final = {"triton": "triton_vllm", "mlserver": "mlserver"}
# What the client receives for a model that fails, and for one that the server lacks. Triton tells no status for them.
FAILED: Final = {"triton": 502, "mlserver": 400}
LACKED: Final = {"triton": 502, "mlserver": 404}
FIT: Final = pytest.mark.skipif(bool(unfit()), reason=unfit())
TRITON: Final = [
    pytest.param("triton-grpc", marks=[needs("triton"), FIT]),
    pytest.param("triton-grpc_web", marks=[needs("triton", "envoy"), FIT]),
]
MLSERVER: Final = [
    pytest.param("mlserver-grpc", marks=needs("mlserver")),
    pytest.param("mlserver-grpc_web", marks=needs("mlserver", "envoy")),
]


class Servers(msgspec.Struct, frozen=True):
    """A gateway with a model for each server on each carrier; the same with the suffix `-unknown`, which the server
    lacks. `models` is the folder of Triton's models."""

    gateway: RunningGateway
    models: Path


def settings(ports: dict[str, int]) -> dict[str, Json]:
    backends: dict[str, Json] = {
        name: {
            "adapter": "proto",
            "preset": PRESETS[name.partition("-")[0]],
            "base_url": f"http://127.0.0.1:{port}",
            "carrier": name.partition("-")[2],
            "timeouts": {"connect": 30, "first_byte": 60},
        }
        for name, port in ports.items()
    }
    known: dict[str, Json] = {name: {"backend": name, "name": "words"} for name in backends}
    unknown: dict[str, Json] = {f"{name}-unknown": {"backend": name, "name": "nothing"} for name in backends}
    return {"backends": backends, "models": {**known, **unknown}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers() -> AsyncIterator[Servers]:
    async with AsyncExitStack() as stack:
        ports: dict[str, int] = {}
        models = Path()
        if not (missing("triton") or unfit()):
            ports["triton-grpc"], models = await stack.enter_async_context(triton())
        if not missing("mlserver"):
            ports["mlserver-grpc"] = await stack.enter_async_context(mlserver())
        if not missing("envoy"):
            proxied = await stack.enter_async_context(envoy(tuple(ports.values())))
            ports |= {f"{name}_web": port for name, port in zip(tuple(ports), proxied, strict=True)}
        yield Servers(await stack.enter_async_context(running_gateway(settings(ports))), models)


def said(text: str) -> list[Json]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("model", [*TRITON, *MLSERVER])
async def test_a_model_answers_word_by_word(model: str, servers: Servers) -> None:
    messages = said("one two 日本")
    whole = await servers.gateway.chat(model=model, messages=messages)
    choice = whole.json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("one two 日本", "stop")
    streamed = await servers.gateway.chat(model=model, messages=messages, stream=True)
    *data, done = frames(streamed.text)
    assert (text_of(data), finishes(data), done) == ("one two 日本", ["stop"], "[DONE]")


@pytest.mark.parametrize("model", TRITON)
async def test_triton_tells_the_end_and_counts(model: str, servers: Servers) -> None:
    response = await servers.gateway.chat(model=model, messages=said("one two three four"), max_tokens=2)
    choice = response.json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("one two", "length")
    assert response.json()["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize("model", [*TRITON, *MLSERVER])
async def test_a_long_prompt_arrives(model: str, servers: Servers) -> None:
    messages = said("x" * 2_000_000 + "\none two")
    response = await servers.gateway.chat(model=model, messages=messages)
    assert response.json()["choices"][0]["message"]["content"] == "one two"


@pytest.mark.parametrize("model", [*TRITON, *MLSERVER])
async def test_a_failure_of_the_model_is_an_error(model: str, servers: Servers) -> None:
    response = await servers.gateway.chat(model=model, messages=said("fail now"))
    assert response.status_code == FAILED[model.partition("-")[0]]
    streamed = await servers.gateway.chat(model=model, messages=said("fail now"), stream=True)
    assert '"finish_reason":"stop"' not in streamed.text and '"error"' in streamed.text


@pytest.mark.parametrize("model", [*TRITON, *MLSERVER])
async def test_a_model_that_the_server_lacks_is_an_error(model: str, servers: Servers) -> None:
    response = await servers.gateway.chat(model=f"{model}-unknown", messages=said("one"))
    assert response.status_code == LACKED[model.partition("-")[0]]


@pytest.mark.parametrize("model", TRITON)
async def test_triton_s_model_stops_when_the_client_has_left(model: str, servers: Servers) -> None:
    body = {**hello(model), "messages": said("wait here"), "stream": True}
    async with servers.gateway.client.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = response.aiter_lines()
        while "wait" not in await anext(lines):
            pass
    cancelled = servers.models / "words" / "cancelled"
    async with asyncio.timeout(WAIT_S):
        while not cancelled.exists():  # noqa: ASYNC110 (nothing tells that a file is there)
            await asyncio.sleep(0.01)
    cancelled.unlink()
