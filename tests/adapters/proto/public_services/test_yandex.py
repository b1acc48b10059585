"""What only Yandex's preset does."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import pytest

from adapters.proto.backend import ProtoOptions
from gateway.core.conversation import Json
from gateway.settings.presets import preset_defaults
from gateway.testing.gateway import running_gateway
from tests.adapters.openai_chat.client.test_conformance import CASE as CHAT
from tests.adapters.proto.public_services.playing import KEY_VARIABLE, pass_scenario, possible, settings
from tests.adapters.proto.public_services.scenarios import SCENARIOS
from tests.adapters.proto.public_services.service import KEY, Reply, ServiceBackend, running_service
from tests.adapters.proto.public_services.test_scenarios import METHODS
from tests.adapters.proto.public_services.yandex import YANDEX, Yandex

HELLO: Final[dict[str, Json]] = {"role": "user", "content": "How late is it?"}
# A message that is not one of a stream holds the calls alone.
WHOLE: Final = [
    name
    for name, scenario in SCENARIOS.items()
    if possible(YANDEX, CHAT, scenario) and not any(step.reply.pieces and step.reply.calls for step in scenario.steps)
]
SCHEMA: Final[dict[str, Json]] = {"type": "object"}


def clock(**fields: Json) -> list[Json]:
    return [{"type": "function", "function": {"name": "clock", "parameters": SCHEMA, **fields}}]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceBackend]:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    method = METHODS[YANDEX.name]
    with running_service(YANDEX, method.request, method.response) as backend:
        yield backend


_FORMAT: Final[Json] = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
FIELDS: Final[dict[str, tuple[dict[str, Any], dict[str, Json]]]] = {
    "one call at a time": (
        {"tools": clock(), "parallel_tool_calls": False},
        {"parallel_tool_calls": False},
    ),
    "a strict tool": ({"tools": clock(strict=True)}, {"strict": ["clock"]}),
    "no reasoning": ({"reasoning_effort": "none"}, {"reasoning": "DISABLED"}),
    "reasoning": ({"reasoning_effort": "high"}, {"reasoning": "ENABLED_HIDDEN"}),
    "a schema": ({"response_format": _FORMAT}, {"json_schema": SCHEMA}),
    "any object": ({"response_format": {"type": "json_object"}}, {"json_object": {}}),
}


@pytest.mark.parametrize(("asked", "received"), FIELDS.values(), ids=FIELDS)
async def test_a_field_of_the_client_is_sent(
    asked: dict[str, Any], received: dict[str, Json], service: ServiceBackend
) -> None:
    service.replies.append(Reply(("Noon.",)))
    async with running_gateway(settings(YANDEX, service)) as gateway:
        response = await gateway.chat(messages=[HELLO], **asked)
    assert response.status_code == 200, response.text
    assert service.requests[0].others == received
    identity = service.metadata[0]["x-client-request-id"]
    assert str(UUID(identity)) == identity


@pytest.mark.parametrize("name", WHOLE)
async def test_an_answer_that_is_not_streamed_passes_a_scenario(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    preset = preset_defaults({"preset": YANDEX.name}, ProtoOptions, "b")
    options = {**preset["request"]["completion_options"], "stream": False}
    request: dict[str, Json] = {**preset["request"], "completion_options": options}
    whole, method = Yandex({**YANDEX.entry, "request": request}), METHODS[YANDEX.name]
    with running_service(whole, method.request, method.response) as backend:
        await pass_scenario(whole, backend, CHAT, SCENARIOS[name], stream=False)


async def test_a_text_that_the_service_takes_back_is_an_error(service: ServiceBackend) -> None:
    """Its filter may put another text in the place of that so far, which a client has read already."""
    service.replies.append(Reply(("Good ", "morning."), finish="content_filter", instead="I cannot say."))
    async with running_gateway(settings(YANDEX, service)) as gateway:
        response = await gateway.chat(messages=[HELLO])
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_invalid_event")


async def test_a_temperature_above_one_is_refused_in_the_words_of_the_service(service: ServiceBackend) -> None:
    async with running_gateway(settings(YANDEX, service)) as gateway:
        response = await gateway.chat(messages=[HELLO], temperature=1.5)
    assert (response.status_code, "temperature" in response.text) == (400, True)


async def test_a_prompt_that_is_too_long_is_said_as_clients_know_it(service: ServiceBackend) -> None:
    service.replies.append(Reply(status=(3, "number of input tokens must be no more than 32768, got 56832")))
    async with running_gateway(settings(YANDEX, service)) as gateway:
        response = await gateway.chat(messages=[HELLO])
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "context_length_exceeded")
    assert "56832 tokens > 32768 maximum" in error["message"]
