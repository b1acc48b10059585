"""Tests conversations that grow faster than they are summarised, over real sockets: what is sent fits the window, and
one rejected summary or one large round does not end compression."""

import json
import logging
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Json
from gateway.core.tokens import estimate_view
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import StoreUnavailable
from tests.server.summaries.scripted import (
    BYTES_A_TOKEN,
    Agent,
    Messages,
    ScriptedModel,
    agent_history,
    agent_round,
    compressing_gateway,
    rules_told,
    summarise,
)


@pytest.fixture(autouse=True)
def every_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")


def window(tokens: int, **compress: Json) -> AbstractAsyncContextManager[tuple[Agent, ScriptedModel]]:
    """Runs a gateway whose model has a window of so many tokens."""
    return compressing_gateway({"models": {"m": {"backend": "b", "context_length": tokens}}}, **compress)


def tokens(messages: Messages) -> int:
    """Returns the estimated tokens of messages as they are sent."""
    return estimate_view(decode(json.dumps({"model": "m", "messages": messages}).encode()))


def large_round(number: int, characters: int, results: int = 1) -> Messages:
    """Returns one assistant turn whose calls return results of so many characters."""
    names = [f"large_{number}_{count}" for count in range(results)]
    calls: Json = [
        {"id": name, "type": "function", "function": {"name": "read_file", "arguments": '{"path": "/srv/app/log.py"}'}}
        for name in names
    ]
    line = "    value = load(setting, 17)  # of the service\n"
    text = line * (characters // len(line))
    messages: Messages = [{"role": "assistant", "content": "", "tool_calls": calls}]
    for name in names:
        messages.append({"role": "tool", "tool_call_id": name, "content": f"{name}\n{text}"})
    return messages


async def test_a_conversation_that_outgrows_its_candidate_is_summarised() -> None:
    trigger = 9_600
    first = next(rounds for rounds in range(60) if tokens(agent_history(rounds)) > trigger)
    async with window(16_000) as (agent, model):
        # What the backend reports would move the trigger.
        model.counts = False
        await agent.ask(agent_history(first))
        history = [*agent_history(first), *(part for n in range(2) for part in large_round(n, 20_000))]
        assert tokens(history) - tokens(agent_history(first)) > 9_000
        for number in range(6):
            history += agent_round(100 + number)
            await agent.ask(history)
        assert tokens(history) > 20_000
        assert len(model.summarised) in (1, 2)
        assert tokens(model.sent) < trigger


async def test_one_rejected_summary_does_not_end_the_compression_of_a_long_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def once(lines: list[dict[str, Any]]) -> str:
        model.summarise = summarise
        return "Error: overloaded"

    async with window(16_000) as (agent, model):
        model.summarise = once
        sent = []
        for rounds in range(10, 134, 2):
            await agent.ask(agent_history(rounds))
            # As the backend counts them.
            sent.append(len(model.bodies[-1]) // BYTES_A_TOKEN)
        assert len(agent_history(rounds)) > 390
        assert rules_told(caplog).count("SUMMARY_REJECTED") == 1
        assert max(sent) <= 16_000


async def test_more_summaries_in_an_hour_than_attempts_may_fail() -> None:
    async with window(16_000) as (agent, model):
        for rounds in range(10, 200, 3):
            await agent.ask(agent_history(rounds))
        assert len(model.summarised) > 8
        assert len(model.bodies[-1]) // BYTES_A_TOKEN < 16_000


async def test_a_large_round_is_summarised_although_little_stands_behind_it(caplog: pytest.LogCaptureFixture) -> None:
    history = [*agent_history(2), *large_round(0, 150_000, 3)]
    async with window(120_000) as (agent, model):
        for number in range(14):
            history += agent_round(100 + number)
        assert tokens(history) > 120_000
        for number in range(3):
            await agent.ask([*history, *agent_round(200 + number)])
        assert len(model.summarised) == 1
        assert tokens(model.sent) < 72_000
        # What stands behind the round is sent as it is.
        assert [one for one in model.sent if one in history[-14 * 3 :]] == history[-14 * 3 :]
    assert "COMPRESSION_FUTILE" not in caplog.text


def results_of(messages: Messages) -> list[str]:
    """Returns the texts of the results among messages."""
    return [str(one["content"]) for one in messages if isinstance(one, dict) and one["role"] == "tool"]


async def test_the_results_of_a_running_round_that_exceeds_the_window_are_shortened_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with window(120_000) as (agent, model):
        model.counts = False
        history = [*agent_history(4), *large_round(0, 170_000, 3)]
        response = await agent.post(history, {"x-dragoman-explain": "1"})
        assert tokens(model.sent) <= 120_000 < tokens(history)
        *answered, one, two, three = results_of(model.sent)
        assert answered != results_of(history)[:4], "what was answered is shortened first"
        # A quarter of the window each at least, the beginning and the end.
        assert all(tokens([{"role": "user", "content": text}]) >= 30_000 - 100 for text in (one, two, three))
        assert all(text.startswith(f"large_0_{n}\n") for n, text in enumerate((one, two, three)))
        assert all("[elided: " in text and text.endswith("# of the service\n") for text in (one, two, three))
        rules = [notice["rule"] for notice in response.json()["dragoman"]["diagnostics"]]
        assert rules.count("TOOL_RESULTS_FITTED") == 1
        assert model.sent[:2] == history[:2]


async def test_results_that_were_answered_are_shortened_until_a_summary_stands_for_them() -> None:
    async with window(16_000) as (agent, model):
        model.counts = False
        history = [*agent_history(1), *(part for n in range(4) for part in large_round(n, 20_000))]
        sent = []
        for number in range(4):
            history += agent_round(100 + number)
            await agent.ask(history)
            sent.append(tokens(model.sent))
            # The newest round is sent whole.
            assert model.sent[-3:] == history[-3:]
        assert max(sent) <= 16_000 < tokens(history)
        assert len(model.summarised) == 1 and sent[-1] < 9_600


async def test_what_cannot_be_made_to_fit_is_sent_as_it_is() -> None:
    async with window(16_000) as (agent, model):
        history: Messages = [*agent_history(2), {"role": "user", "content": "word " * 20_000}]
        await agent.ask(history)
        assert model.sent == history


@pytest.mark.parametrize("failing", ["epoch", "get"])
async def test_results_are_shortened_while_the_store_is_away(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailable("down", failing)

    async with window(16_000) as (agent, model):
        monkeypatch.setattr(MemoryStore, failing, fail)
        history = [*agent_history(1), *(part for n in range(4) for part in large_round(n, 20_000))]
        await agent.ask(history)
        assert tokens(model.sent) <= 16_000 < tokens(history)


async def test_explain_shortens_as_the_server_does() -> None:
    async with window(16_000) as (agent, model):
        model.counts = False
        history = [*agent_history(1), *(part for n in range(4) for part in large_round(n, 20_000))]
        for number in range(3):
            history += agent_round(100 + number)
            response = await agent.gateway.client.post("/v1/explain", json={"model": "m", "messages": history})
            explanation = response.json()
            await agent.ask(history)
            assert explanation["wire"] == model.sent
            assert abs(explanation["state"]["summary"]["estimate"] - tokens(model.sent)) < 100


async def test_explain_names_the_job_that_follows_where_a_candidate_is_outgrown() -> None:
    async with window(16_000) as (agent, model):
        model.counts = False
        history = agent_history(20)
        await agent.ask(history)
        for number in range(5):
            history += [*large_round(number, 20_000), *agent_round(100 + number)]
            response = await agent.gateway.client.post("/v1/explain", json={"model": "m", "messages": history})
            state = response.json()["state"]["summary"]
            jobs = len(model.summarised)
            await agent.ask(history)
            began = [json.loads(one["messages"][1]["content"].split("\n")[-1])["n"] for one in model.summarised[jobs:]]
            expected = [state["would_cover"]["turns"]] if state["why_not"] is None else []
            assert began == expected
        assert len(model.summarised) > 1
