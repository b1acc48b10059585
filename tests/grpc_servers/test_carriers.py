"""The gateway in front of servers and proxies of others: what they answer, what a client receives, what they see."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec
import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.adapters.proto.backend.mappings import TALK
from tests.grpc_servers.cases import ANSWERS, CASES, COMPRESSED, DELAYED, PATIENCE_S, STREAM
from tests.grpc_servers.installed import needs
from tests.grpc_servers.wires import WIRES, Running, running_wires
from tests.promises.wire_gateway import finishes, frames, text_of

pytestmark = [pytest.mark.grpc, pytest.mark.asyncio(loop_scope="module"), needs()]
WAYS = [
    pytest.param(name, carrier, marks=needs(*wire.needs), id=f"{name}-{carrier}")
    for name, wire in WIRES.items()
    for carrier in wire.carriers
]
# Long ones: a busy machine must not look like a silent server.
TOTAL_S: Final = 100
TIMEOUTS: Final[Mapping[str, Json]] = {"connect": 30, "first_byte": 60, "idle": 60, "total": TOTAL_S}


class Servers(msgspec.Struct, frozen=True):
    """A gateway with a model for every answer on every way, and what runs behind it."""

    gateway: RunningGateway
    running: Running


def model(way: str, carrier: str, name: str) -> str:
    return f"{way}-{carrier}-{name}"


def settings(running: Running) -> dict[str, Json]:
    methods = {name: CASES[name].method if name in CASES else STREAM for name in ANSWERS}
    backends: dict[str, Json] = {
        model(way, carrier, name): {
            **TALK,
            "adapter": "proto",
            "base_url": f"{address}/{name}",
            "carrier": carrier,
            "method": method,
            "timeouts": dict(TIMEOUTS),
        }
        for way, address in running.addresses.items()
        for carrier in WIRES[way].carriers
        for name, method in methods.items()
    }
    return {"backends": backends, "models": {name: {"backend": name} for name in backends}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers() -> AsyncIterator[Servers]:
    async with running_wires() as running, running_gateway(settings(running)) as gateway:
        yield Servers(gateway, running)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("way", "carrier"), WAYS)
async def test_an_answer_is_what_the_server_has_sent(way: str, carrier: str, name: str, servers: Servers) -> None:
    case = CASES[name]
    asked = model(way, carrier, name)
    whole = await servers.gateway.chat(model=asked)
    streamed = await servers.gateway.chat(model=asked, stream=True)
    if not case.code:
        said = (whole.status_code, whole.json()["choices"][0]["message"]["content"])
        assert said == (200, case.text)
        *data, done = frames(streamed.text)
        assert (text_of(data), finishes(data), done) == (case.text, ["stop"], "[DONE]")
        return
    error = whole.json()["error"]
    assert (whole.status_code, error["code"]) == (case.status, case.code)
    assert case.words in error["message"]
    assert '"finish_reason":"stop"' not in streamed.text and f'"code":"{case.code}"' in streamed.text


@pytest.mark.parametrize(
    ("way", "carrier"), [param for param in WAYS if WIRES[str(param.values[0])].program == "grpcio"]
)
async def test_a_message_that_is_compressed_without_being_asked_for_is_refused(
    way: str, carrier: str, servers: Servers
) -> None:
    response = await servers.gateway.chat(model=model(way, carrier, COMPRESSED))
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_invalid_event")


@pytest.mark.parametrize(("way", "carrier"), WAYS)
async def test_a_client_hears_the_delay_in_the_details_of_a_status(way: str, carrier: str, servers: Servers) -> None:
    response = await servers.gateway.chat(model=model(way, carrier, DELAYED))
    assert (response.status_code, response.headers["retry-after"]) == (429, str(PATIENCE_S))


@pytest.mark.parametrize(("way", "carrier"), WAYS)
async def test_many_requests_at_once_are_answered(way: str, carrier: str, servers: Servers) -> None:
    asked = model(way, carrier, "whole")
    for _ in range(4):
        responses = await asyncio.gather(*(servers.gateway.chat(model=asked) for _ in range(60)))
        assert {response.status_code for response in responses} == {200}, [response.text for response in responses]


@pytest.mark.parametrize(("way", "carrier"), WAYS)
async def test_a_server_sees_that_the_client_has_left_a_stream(way: str, carrier: str, servers: Servers) -> None:
    server = servers.running.servers[WIRES[way].program]
    body = {**hello(model(way, carrier, "held")), "stream": True}
    async with servers.gateway.client.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = response.aiter_lines()
        while "Good" not in await anext(lines):
            pass
    await server.event("left", "held")


@pytest.mark.parametrize(("way", "carrier"), WAYS)
async def test_a_server_knows_how_long_the_client_waits_and_sees_that_it_has_left(
    way: str, carrier: str, servers: Servers
) -> None:
    server = servers.running.servers[WIRES[way].program]
    asking = asyncio.create_task(servers.gateway.chat(model=model(way, carrier, "silent")))
    request = await server.event("request", "silent")
    assert 0 < request["timeout_s"] <= TOTAL_S
    asking.cancel()
    await server.event("left", "silent")
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize(("way", "carrier"), WAYS)
async def test_a_server_that_dies_has_not_finished(way: str, carrier: str) -> None:
    async with running_wires([way]) as running, running_gateway(settings(running)) as gateway:
        body = {**hello(model(way, carrier, "held")), "stream": True}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=body) as response:
            text = ""
            async for piece in response.aiter_text():
                text += piece
                if "Good" in piece:
                    running.servers[WIRES[way].program].process.kill()
    assert '"finish_reason":"stop"' not in text and '"error"' in text
