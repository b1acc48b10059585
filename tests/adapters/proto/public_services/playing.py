"""Plays the scenarios: a client of a dialect, a gateway, and the server of a service."""

import asyncio
import json
from typing import Final

import httpx
import msgspec

from gateway.core.conversation import Conversation, Json, NamedTool, Text, ToolResult, Turn
from gateway.testing.dialect_case import ClientAnswer, DialectCase
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.proto.public_services.scenarios import Scenario, Step, history_of
from tests.adapters.proto.public_services.service import (
    Called,
    Offered,
    Reply,
    Said,
    Service,
    ServiceBackend,
)

KEY_VARIABLE: Final = "KEY_OF_A_PUBLIC_SERVICE"
_HEADERS: Final = {"content-type": "application/json"}
_WAIT_S: Final = 20


def possible(service: Service, case: DialectCase, scenario: Scenario) -> bool:
    """Returns whether the dialect can ask for it, and the service can be asked."""
    return (
        not scenario.lacks & case.lacks
        and scenario.needs <= service.choices
        and not scenario.without & service.choices
        and scenario.most_calls <= service.most_calls
    )


def settings(service: Service, backend: ServiceBackend) -> dict[str, Json]:
    """Returns settings.json with the service as the model `m`."""
    entry: dict[str, Json] = {**service.entry, "base_url": backend.base_url, "api_key_env": KEY_VARIABLE}
    return {"backends": {"b": entry}, "models": {"m": {"backend": "b", "name": service.model}}}


async def pass_scenario(
    service: Service, backend: ServiceBackend, case: DialectCase, scenario: Scenario, *, stream: bool
) -> None:
    """Plays one scenario. Raises AssertionError where the client or the service reads something else than the other
    side has said."""
    conversation = scenario.conversation(stream=stream)
    async with running_gateway(settings(service, backend)) as gateway:
        if scenario.refused:
            response = await _send(gateway, case, conversation)
            assert response.status_code == 400 and scenario.refused in case.read_error(response.content)
            assert backend.requests == []
        for step in scenario.steps:
            backend.replies.append(step.reply)
            response = await _send(gateway, case, conversation)
            _check_request(service, backend, conversation)
            if step.reply.status is not None:
                _check_error(case, scenario, step.reply, response, stream=stream)
                return
            answer = _read(case, response, stream=stream)
            _check_answer(case, step.reply, answer)
            conversation = _continued(conversation, step, answer)


async def cancel(service: Service, backend: ServiceBackend, case: DialectCase, scenario: Scenario) -> None:
    """Leaves after the first piece of a stream. Raises AssertionError where the service does not learn of it."""
    conversation = scenario.conversation(stream=True)
    backend.replies.append(Reply(("Good ",), held=True))
    async with running_gateway(settings(service, backend)) as gateway:
        target, body = case.target(conversation), case.write(conversation)
        async with gateway.client.stream("POST", target, content=body, headers=_HEADERS) as response:
            read = b""
            async for piece in response.aiter_bytes():
                read += piece
                if case.read_stream(read).text:
                    break
        assert await asyncio.to_thread(backend.left.wait, _WAIT_S)
    answer = case.read_stream(read)
    assert (answer.text, answer.finish) == ("Good ", None)


async def _send(gateway: RunningGateway, case: DialectCase, conversation: Conversation) -> httpx.Response:
    return await gateway.client.post(case.target(conversation), content=case.write(conversation), headers=_HEADERS)


def _read(case: DialectCase, response: httpx.Response, *, stream: bool) -> ClientAnswer:
    assert response.status_code == 200, response.text
    return case.read_stream(response.content) if stream else case.read_whole(response.content)


def _check_request(service: Service, backend: ServiceBackend, conversation: Conversation) -> None:
    assert backend.requests, "the service has refused the request"
    received = backend.requests.pop()
    assert received.model == service.model
    # Not every API can say that a tool has failed, and not every service can be told.
    assert tuple(map(_untold, received.history)) == history_of(conversation)
    chosen = conversation.tool_choice
    tools = [Offered(tool.name, tool.description, tool.parameters) for tool in conversation.tools]
    if isinstance(chosen, NamedTool):
        # Gemini's API names the functions that are allowed, and the others are not sent.
        tools = [tool for tool in tools if tool.name == chosen.name or tool in received.tools]
    assert [*received.tools] == ([] if chosen == "none" else tools)
    wanted = chosen.name if isinstance(chosen, NamedTool) else chosen
    assert received.choice == wanted or (received.choice is None and wanted in ("auto", "none"))
    assert received.temperature == conversation.sampling.temperature
    if conversation.sampling.max_tokens is not None:
        assert received.max_tokens == conversation.sampling.max_tokens


def _untold(one: Said | Called) -> Said | Called:
    return msgspec.structs.replace(one, failed=False) if isinstance(one, Called) else one


def _check_answer(case: DialectCase, reply: Reply, answer: ClientAnswer) -> None:
    assert answer.text == "".join(reply.pieces)
    assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [*reply.calls]
    assert reply.finish != "invalid_call"
    assert answer.finish == case.finishes["tool_calls" if reply.calls else reply.finish]
    assert answer.usage == (7, len(reply.pieces) + 1)


def _check_error(
    case: DialectCase, scenario: Scenario, reply: Reply, response: httpx.Response, *, stream: bool
) -> None:
    assert scenario.error is not None
    status, word = scenario.error
    if stream and reply.pieces:
        answer = _read(case, response, stream=True)
        assert (answer.text, answer.finish) == ("".join(reply.pieces), None)
        assert word in (answer.error or "")
        return
    assert response.status_code == case.statuses.get(status, status)
    assert word in case.read_error(response.content)


def _continued(conversation: Conversation, step: Step, answer: ClientAnswer) -> Conversation:
    """Returns the next request of a client: what it has read, and the results of its tools."""
    said = (Text(answer.text),) if answer.text else ()
    results = [
        Turn("tool", (ToolResult(call.id, (Text(result),), is_error=step.failed),))
        for call, result in zip(answer.calls, step.results, strict=False)
    ]
    turns = (*conversation.turns, Turn("assistant", (*said, *answer.calls)), *results)
    return msgspec.structs.replace(conversation, turns=turns)
