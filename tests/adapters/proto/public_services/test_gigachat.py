"""What only GigaChat's preset does."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway
from tests.adapters.openai_chat.client.test_conformance import CASE as CHAT
from tests.adapters.proto.public_services.gigachat import GIGACHAT, STATE, GigaChat
from tests.adapters.proto.public_services.playing import KEY_VARIABLE, pass_scenario, possible, settings
from tests.adapters.proto.public_services.scenarios import SCENARIOS
from tests.adapters.proto.public_services.service import KEY, Called, Reply, Said, ServiceBackend, running_service
from tests.adapters.proto.public_services.test_scenarios import METHODS

HELLO: Final[dict[str, Json]] = {"role": "user", "content": "How late is it?"}
CLOCK: Final[list[Json]] = [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceBackend]:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    method = METHODS[GIGACHAT.name]
    with running_service(GIGACHAT, method.request, method.response) as backend:
        yield backend


@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if possible(GIGACHAT, CHAT, scenario)])
async def test_the_method_with_one_message_passes_a_scenario(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    whole, method = GigaChat("Chat"), METHODS[GIGACHAT.name]
    with running_service(whole, method.request, method.response, "unary") as backend:
        await pass_scenario(whole, backend, CHAT, SCENARIOS[name], stream=False)


async def test_the_state_of_a_call_returns_with_it(service: ServiceBackend) -> None:
    """`functions_state_id` "keeps the context of the call" if it comes back with the assistant's message."""
    service.replies += [Reply((), (("clock", {}),)), Reply(("Noon.",))]
    async with running_gateway(settings(GIGACHAT, service)) as gateway:
        said: Any = (await gateway.chat(messages=[HELLO], tools=CLOCK)).json()["choices"][0]["message"]
        result: Json = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "12:00"}
        response = await gateway.chat(messages=[HELLO, said, result], tools=CLOCK)
    assert response.json()["choices"][0]["message"]["content"] == "Noon."
    assert [request.state for request in service.requests] == [None, STATE]


async def test_the_state_cache_returns_the_state_for_a_client_without_a_place_for_it(service: ServiceBackend) -> None:
    service.replies += [Reply((), (("clock", {}),)), Reply(("Noon.",))]
    tools: Json = [{"name": "clock", "input_schema": {"type": "object"}}]
    body: dict[str, Json] = {"model": "m", "max_tokens": 9, "tools": tools}
    async with running_gateway({**settings(GIGACHAT, service), "keeper": {"enabled": True}}) as gateway:
        said = (await gateway.client.post("/v1/messages", json={**body, "messages": [HELLO]})).json()["content"]
        result: Json = {"type": "tool_result", "tool_use_id": said[-1]["id"], "content": "12:00"}
        history = [HELLO, {"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
        response = await gateway.client.post("/v1/messages", json={**body, "messages": history})
    assert response.status_code == 200, response.text
    assert [request.state for request in service.requests] == [None, STATE]


async def test_a_result_says_that_the_tool_has_failed(service: ServiceBackend) -> None:
    service.replies.append(Reply(("I do not know.",)))
    call: Json = {"type": "tool_use", "id": "c", "name": "clock", "input": {}}
    result: Json = {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "no such zone"}
    tools: Json = [{"name": "clock", "input_schema": {"type": "object"}}]
    messages: Json = [HELLO, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    body: Json = {"model": "m", "max_tokens": 9, "messages": messages, "tools": tools}
    async with running_gateway(settings(GIGACHAT, service)) as gateway:
        response = await gateway.client.post("/v1/messages", json=body)
    assert response.status_code == 200, response.text
    assert service.requests[0].history[-1] == Called("clock", {}, "no such zone", failed=True)


async def test_a_later_system_message_is_text_of_the_user(service: ServiceBackend) -> None:
    service.replies.append(Reply(("Noon.",)))
    messages: list[Json] = [{"role": "system", "content": "Be brief."}, HELLO, {"role": "system", "content": "Hurry."}]
    async with running_gateway(settings(GIGACHAT, service)) as gateway:
        response = await gateway.chat(messages=messages)
    assert response.status_code == 200, response.text
    first, *later = service.requests[0].history
    assert first == Said("system", "Be brief.")
    assert all(isinstance(one, Said) and one.role == "user" for one in later)
    assert "Hurry." in str(later)


async def test_arguments_that_the_service_finds_invalid_are_an_error(service: ServiceBackend) -> None:
    """`finish_reason` is `error` then."""
    service.replies.append(Reply(("Hm",), finish="invalid_call"))
    async with running_gateway(settings(GIGACHAT, service)) as gateway:
        response = await gateway.chat(messages=[HELLO], tools=CLOCK)
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_stream_truncated")
