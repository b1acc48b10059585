"""What other features do for a request whose answer goes on with another model: budgets, pictures, summaries."""

import json
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import Connection, faulty_backend
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.server.api.candidate_gateway import (
    OVERLOADED,
    ROLE,
    Play,
    asked,
    bodies,
    breaks_off,
    candidates_gateway,
    metric,
    says,
    sse,
    text_of,
)
from tests.server.api.test_hidden_rounds import SEARCH, Rounds, counted, tools
from tests.server.api.test_hidden_rounds import said as called
from tests.server.media.scene import picture
from tests.server.summaries.scripted import WINDOW, Agent, ScriptedModel, agent_history, compress_settings

# Rounds of a history that is long enough for a summary.
LONG: Final = 28
COUNTED: Final = sse(
    {
        "id": "a",
        "object": "chat.completion.chunk",
        "choices": [],
        "usage": {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34},
    }
)


def spent(gateway: RunningGateway) -> dict[str, int]:
    """What the key without a name has spent; nothing of it is expected any more."""
    spending = gateway.app.gateway_state.spending
    assert spending is not None
    known = spending.budgets._keys.get("-")
    shares = {} if known is None else known.shares
    assert all(not share.running for share in shares.values())
    return {name: share.spent for name, share in shares.items()}


async def test_each_try_is_charged_at_the_price_of_its_model() -> None:
    models: dict[str, dict[str, Json]] = {
        "m": {"price": {"input": 1000, "output": 1000}},
        "n": {"price": {"input": 1, "output": 1}},
    }
    keys: Json = {"*": {"budget": {"money_per_day": 1000, "tokens_per_day": 10_000}}}
    plays = {"m": breaks_off(ROLE, COUNTED), "n": says("hello")}
    async with candidates_gateway(plays, models=models, keys=keys) as (gateway, _):
        response = await gateway.chat(stream=True)
        assert text_of(response.text) == "hello"
        found = spent(gateway)
    # The counts of the first try, and what the second one is estimated to have used.
    cost, tokens = found["money_per_day"], found["tokens_per_day"]
    assert 34 < tokens < 60
    assert cost - 30_000 - 4_000 < 1000 and cost > 30_000, found


async def test_a_try_that_the_budget_no_longer_allows_is_not_made() -> None:
    keys: Json = {"*": {"budget": {"tokens_per_day": 34}}}
    plays = {"m": breaks_off(ROLE, COUNTED), "n": says("hello")}
    async with candidates_gateway(plays, keys=keys) as (gateway, backends):
        response = await gateway.chat(stream=True)
        again = await gateway.chat(stream=True)
        assert spent(gateway) == {"tokens_per_day": 34}
        assert await metric(gateway, 'gateway_candidate_tries_total{backend="n",outcome="refused"} 1.0')
        assert not await metric(gateway, 'gateway_open_circuits{backend="n"} 1.0')
    assert asked(backends) == {"m": 1}
    # The client may try again, and is told then.
    assert response.status_code == 502, response.text
    assert (again.status_code, again.json()["error"]["code"]) == (429, "insufficient_quota")


@pytest.mark.parametrize("state", ["on", "off"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_picture_is_described_once_for_all_tries(state: str, stream: bool) -> None:
    """Also where nothing of the request may be remembered behind it."""
    text_only: dict[str, Json] = {"images": "describe", "facts": {"images": False}}
    plays = {"m": OVERLOADED, "n": says("hello"), "seeing": says("A-red-square.")}
    messages: list[Json] = [{"role": "user", "content": [picture()]}]
    body = {**hello(), "stream": stream, "messages": messages}
    head = {"x-dragoman-explain": "1", **({"x-dragoman-state": "off"} if state == "off" else {})}
    async with candidates_gateway(
        plays, {**text_only, "candidates": ["n"]}, models={"n": text_only}, vision={"model": "seeing"}
    ) as (gateway, backends):
        response = await gateway.client.post("/v1/chat/completions", json=body, headers=head)
    assert response.status_code == 200, response.text
    assert "A-red-square." in json.dumps(bodies(backends["n"]))
    assert asked(backends) == {"m": 1, "n": 1, "seeing": 1}
    assert response.text.count("IMAGE_DESCRIBED") == 1


async def test_a_picture_that_could_not_be_described_is_not_waited_for_again() -> None:
    text_only: dict[str, Json] = {"images": "describe", "facts": {"images": False}}
    plays = {"m": OVERLOADED, "n": says("hello"), "seeing": OVERLOADED}
    messages: list[Json] = [{"role": "user", "content": [picture()]}]
    body = {**hello(), "messages": messages}
    head = {"x-dragoman-explain": "1", "x-dragoman-state": "off"}
    async with candidates_gateway(
        plays, {**text_only, "candidates": ["n"]}, models={"n": text_only}, vision={"model": "seeing"}
    ) as (gateway, backends):
        response = await gateway.client.post("/v1/chat/completions", json=body, headers=head)
    assert response.status_code == 200, response.text
    assert asked(backends) == {"m": 1, "n": 1, "seeing": 1}
    assert response.text.count("IMAGE_NOT_DESCRIBED") == 1


async def test_a_summary_is_sent_to_the_other_model_too() -> None:
    scripted, failing = ScriptedModel(), False

    async def script(connection: Connection) -> None:
        if failing and json.loads(connection.body)["model"] == "m":
            await OVERLOADED(connection)
            return
        await scripted.script(connection)

    async with faulty_backend(script) as backend:
        windowed: dict[str, Json] = {"backend": "b", "context_length": WINDOW}
        models: Json = {"m": {**windowed, "candidates": ["n"]}, "n": windowed}
        async with running_gateway({**compress_settings(backend.base_url), "models": models}) as gateway:
            agent = Agent(gateway)
            await agent.ask(agent_history(LONG))
            await agent.ask(agent_history(LONG + 1))
            failing = True
            response = await agent.post(agent_history(LONG + 2), {"x-dragoman-explain": "1"})
            await agent.settled()
    assert response.status_code == 200, response.text
    assert scripted.answered[-1]["model"] == "n"
    assert "this summary of them stands instead" in json.dumps(scripted.sent)
    assert len(scripted.summarised) == 1
    told = [one["rule"] for one in response.json()["dragoman"]["diagnostics"]]
    assert told.count("HISTORY_SUMMARIZED") == 1 and told.count("MODEL_SWITCHED") == 1


async def test_an_answer_that_fails_in_a_later_round_begins_anew_with_the_other_model() -> None:
    """The client has seen nothing of the first round, in which the model has searched for tools."""
    searching = Rounds((called(calls=[SEARCH]), called(finish="tool_calls"), counted(100, 10)))
    of_m: list[Play] = [OVERLOADED, searching]

    async def first(connection: Connection) -> None:
        await of_m.pop()(connection)

    loading: dict[str, Json] = {"tool_loading": "on_demand"}
    plays = {"m": first, "n": says("hel lo")}
    async with candidates_gateway(plays, {**loading, "candidates": ["n"]}, models={"n": loading}) as (
        gateway,
        backends,
    ):
        offered = tools("get_weather", "send_mail", "list_files", "read_stock", "book_room", "play_song")
        body = {**hello(), "stream": True, "tools": offered}
        response = await gateway.client.post("/v1/chat/completions", json=body, headers={"x-dragoman-explain": "1"})
    assert response.status_code == 200, response.text
    assert text_of(response.text) == "hello"
    assert "tool_search" not in response.text.partition('"diagnostics"')[0]
    assert asked(backends) == {"m": 2, "n": 1}
    # The other model begins with the conversation of the client.
    assert [one["role"] for one in bodies(backends["n"])[0]["messages"]][-1] == "user"
