"""Tests compression of requests, over real sockets: when a summary is written, what is sent with it, what it never
costs."""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.server.state.guarded_store import GuardedStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import Entry, Space, StoreUnavailable
from gateway.server.summaries.summary_store import shared_key
from gateway.testing.faulty import answer
from tests.server.summaries.scripted import (
    Agent,
    Messages,
    ScriptedModel,
    agent_history,
    compressing_gateway,
    rules_told,
)

# Above the trigger, and within the window for some rounds more.
LONG: Final = 28


@pytest.fixture(autouse=True)
def every_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")


def is_summarised(model: ScriptedModel) -> bool:
    """Returns whether the newest request was sent with a summary."""
    return "this summary of them stands instead" in json.dumps(model.sent)


async def summarised(agent: Agent, model: ScriptedModel) -> None:
    """Lets a summary of the agent's history be written."""
    await agent.ask(agent_history(LONG))
    await agent.ask(agent_history(LONG + 1))
    assert len(model.summarised) == 1


async def test_a_long_history_is_summarised_when_it_comes_again_and_then_sent_short(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with compressing_gateway() as (agent, model):
        await agent.ask(agent_history(LONG))
        assert not model.summarised
        await agent.ask(agent_history(LONG + 1))
        assert len(model.summarised) == 1 and not is_summarised(model)
        await agent.ask(agent_history(LONG + 2))
        history = agent_history(LONG + 2)
        assert len(model.summarised) == 1 and is_summarised(model)
        # The system text, the summary, the question once more, and the newest turns as they are.
        assert model.sent[0] == history[0] and model.sent[2] == history[1]
        assert model.sent[3:] == history[-len(model.sent) + 3 :]
        assert len(model.sent) < len(history) / 3
        told = rules_told(caplog)
        assert told == ["SUMMARY_CANDIDATE", "SUMMARY_STARTED", "SUMMARY_STORED", "HISTORY_SUMMARIZED"]


async def test_the_client_is_told_and_the_metrics_count(caplog: pytest.LogCaptureFixture) -> None:
    async with compressing_gateway() as (agent, model):
        await summarised(agent, model)
        response = await agent.gateway.client.post(
            "/v1/chat/completions",
            json={"model": "m", "messages": agent_history(LONG + 2)},
            headers={"x-dragoman-explain": "1"},
        )
        await agent.settled()
        assert "state=1" in response.headers["x-dragoman-changes"]
        rules = [notice["rule"] for notice in response.json()["dragoman"]["diagnostics"]]
        assert "HISTORY_SUMMARIZED" in rules
        metrics = (await agent.gateway.client.get("/metrics")).text
        assert 'gateway_summaries_total{backend="b",outcome="stored"} 1.0' in metrics
        assert 'gateway_summarized_requests_total{backend="b"} 1.0' in metrics
        assert 'gateway_notices_total{rule="SUMMARY_STORED",stage="state"} 1.0' in metrics
        assert "gateway_summaries_running 0.0" in metrics
        (saved,) = (line for line in metrics.splitlines() if line.startswith("gateway_summary_saved_tokens_total{"))
        assert float(saved.rpartition(" ")[2]) > 4000
        # The tokens of the summary are its own: no client sees them, and no client's counter.
        spent = len(json.dumps(model.summarised[0])) // 4
        (prompt,) = (
            line
            for line in metrics.splitlines()
            if line.startswith("gateway_summary_tokens_total") and "prompt" in line
        )
        assert 'key="-"' in prompt and abs(float(prompt.rpartition(" ")[2]) - spent) < 200
        assert response.json()["usage"]["prompt_tokens"] < 8000


async def test_no_request_waits_for_a_summary() -> None:
    async with compressing_gateway() as (agent, model):
        model.gate.clear()
        await agent.ask(agent_history(LONG))
        for rounds in range(LONG + 1, LONG + 4):
            # Answered while the summary is being written, with as many requests and reads as without it.
            assert await agent.ask_only(agent_history(rounds)) == "Noted."
        await model.has_begun()
        assert (len(model.answered), len(model.summarised)) == (4, 1)
        assert model.sent == agent_history(LONG + 3)
        model.gate.set()
        await agent.settled()
        await agent.ask(agent_history(LONG + 4))
        assert is_summarised(model)


async def test_streams_count_and_are_sent_short_as_well() -> None:
    async with compressing_gateway() as (agent, model):
        for rounds in range(LONG, LONG + 3):
            response = await agent.post(agent_history(rounds), stream=True)
            assert "Noted." in response.text and response.text.endswith("data: [DONE]\n\n")
            await agent.settled()
        assert is_summarised(model) and len(model.summarised) == 1


async def test_fifty_equal_requests_cost_one_summary() -> None:
    async with compressing_gateway() as (agent, model):
        await agent.ask(agent_history(LONG))
        await asyncio.gather(*(agent.ask_only(agent_history(LONG)) for _ in range(50)))
        await agent.settled()
        assert (len(model.answered), len(model.summarised)) == (51, 1)


async def test_a_history_that_comes_once_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with compressing_gateway() as (agent, model):
        for number in range(5):
            await agent.ask(agent_history(LONG, f"Question {number}?"))
        assert not model.summarised
        assert rules_told(caplog) == ["SUMMARY_CANDIDATE"] * 5


async def test_a_history_whose_old_turns_change_costs_nothing() -> None:
    async with compressing_gateway() as (agent, model):
        for number in range(8):
            history = agent_history(LONG + number)
            history[1] = {"role": "user", "content": f"It is {number} o'clock. Why does the service fail?"}
            await agent.ask(history)
        assert not model.summarised


async def test_below_the_trigger_nothing_is_looked_up(caplog: pytest.LogCaptureFixture) -> None:
    async with compressing_gateway() as (agent, model):
        before = operations(await agent.metrics())
        await agent.ask(agent_history(3))
        await agent.ask(agent_history(4))
        assert not model.summarised and not rules_told(caplog)
        assert operations(await agent.metrics()) == before == []


def operations(metrics: str) -> list[str]:
    """Returns the operations on the spaces of summaries."""
    lines = [line for line in metrics.splitlines() if line.startswith("gateway_state_operations_total{")]
    return [line for line in lines if 'space="idx"' in line or 'space="sum"' in line]


async def test_what_the_client_changes_behind_the_boundary_keeps_the_summary_and_before_it_does_not() -> None:
    async with compressing_gateway() as (agent, model):
        await summarised(agent, model)
        edited: Messages = [*agent_history(LONG + 1)[:-1], {"role": "user", "content": "Stop reading and tell me."}]
        await agent.ask(edited)
        assert is_summarised(model) and model.sent[-1] == edited[-1]
        history = agent_history(LONG + 2)
        history[1] = {"role": "user", "content": "Why does it stop?"}
        await agent.ask(history)
        assert model.sent == history
        renamed = agent_history(LONG + 2)
        renamed[0] = {"role": "system", "content": "You are an agent. Today is Tuesday."}
        await agent.ask(renamed)
        assert is_summarised(model) and model.sent[0] == renamed[0]


async def test_a_client_that_wants_nothing_remembered_gets_and_leaves_nothing() -> None:
    async with compressing_gateway() as (agent, model):
        await summarised(agent, model)
        await agent.ask(agent_history(LONG + 2), **{"x-dragoman-state": "off"})
        assert model.sent == agent_history(LONG + 2)


async def test_a_client_that_asks_its_provider_to_compact_is_left_alone() -> None:
    async with compressing_gateway() as (agent, model):
        await summarised(agent, model)
        context: Json = [{"type": "compaction", "compact_threshold": 1000}]
        await agent.ask_only(agent_history(LONG + 2), context_management=context)
        assert model.sent == agent_history(LONG + 2)


@pytest.mark.full
@pytest.mark.parametrize("counts", [True, False])
async def test_two_hundred_growing_turns_cost_no_more_summaries_than_they_save(counts: bool) -> None:
    async with compressing_gateway() as (agent, model):
        model.counts = counts
        for rounds in range(LONG - 10, LONG + 60):
            await agent.ask(agent_history(rounds))
        tokens = len(json.dumps(agent_history(LONG + 60))) / 2
        assert 2 <= len(model.summarised) <= tokens / 4000
        assert is_summarised(model) and len(model.sent) < 100


async def test_a_system_text_that_alone_is_too_long_costs_nothing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with compressing_gateway() as (agent, model):
        for rounds in range(LONG, LONG + 6):
            history = agent_history(rounds)
            history[0] = {"role": "system", "content": "Keep every rule of this long text. " * 2500}
            await agent.ask(history)
        assert not model.summarised
        assert rules_told(caplog) == ["COMPRESSION_FUTILE"]


async def test_a_refusal_because_of_length_is_a_sighting() -> None:
    async with compressing_gateway() as (agent, model):
        refusal = b'{"error": {"message": "too long", "code": "context_length_exceeded"}}'
        model.refusal = answer("400 x", refusal, b"content-type: application/json")
        # By the estimate alone, this history is within the trigger.
        history = agent_history(16)
        for _ in range(2):
            response = await agent.post(history)
            assert (response.status_code, response.json()["error"]["code"]) == (400, "context_length_exceeded")
            await agent.settled()
        assert len(model.summarised) == 1
        model.refusal = b""
        await agent.ask(history)
        assert is_summarised(model)


def bad_summaries() -> Iterator[tuple[str, str, str]]:
    """Yields an answer, its finish reason, and why it is not stored."""
    cited = '"from": [1]}'
    yield "", "stop", "the answer is empty"
    yield "Error: the model is overloaded.", "stop", "error"
    yield '{"goal": [{"text": "Find', "length", "'length'"
    yield '{"goal": [{"text": "Find", "from": [900]}]}', "stop", "cite no turn"
    yield '{"goal": [{"text": "[elided: 3 chars]", ' + cited + "]}", "stop", "marks"
    yield '{"goal": [{"text": "Use sk-abcdefghijklmnop1234", ' + cited + "]}", "stop", "credentials"


@pytest.mark.parametrize(("text", "finish", "reason"), list(bad_summaries()))
async def test_a_bad_summary_is_not_stored_and_not_tried_again_at_once(
    text: str, finish: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with compressing_gateway() as (agent, model):
        model.summarise, model.finish = lambda _: text, finish
        await summarised(agent, model)
        await agent.ask(agent_history(LONG + 2))
        assert len(model.summarised) == 1
        assert model.sent == agent_history(LONG + 2)
        assert rules_told(caplog) == ["SUMMARY_CANDIDATE", "SUMMARY_STARTED", "SUMMARY_REJECTED"]
        assert reason in caplog.text
        assert 'gateway_summaries_total{backend="b",outcome="rejected"} 1.0' in await agent.metrics()


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (answer("500 x", b'{"error": {"message": "broken"}}', b"content-type: application/json"), "upstream_error"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{", "truncated"),
        (b"", "upstream_"),
    ],
)
async def test_a_backend_that_fails_changes_no_answer(
    refusal: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with compressing_gateway() as (agent, model):
        model.summary_fault = refusal
        await summarised(agent, model)
        await agent.ask(agent_history(LONG + 2))
        assert len(model.summarised) == 1 and model.sent == agent_history(LONG + 2)
        assert rules_told(caplog)[-1] == "SUMMARY_FAILED" and reason in caplog.text


async def test_a_summary_that_takes_too_long_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async with compressing_gateway(deadline_s=0.2) as (agent, model):
        model.gate.clear()
        await summarised(agent, model)
        assert "upstream_timeout" in caplog.text
        assert rules_told(caplog)[-1] == "SUMMARY_FAILED"


async def test_the_tokens_of_a_day_bound_what_a_key_may_cost(caplog: pytest.LogCaptureFixture) -> None:
    async with compressing_gateway(tokens_per_day=5000) as (agent, model):
        for rounds in range(LONG, LONG + 4):
            await agent.ask(agent_history(rounds))
        assert not model.summarised
        assert rules_told(caplog) == ["SUMMARY_CANDIDATE", "SUMMARY_BUDGET"]


async def test_a_key_has_its_own_summaries_and_may_have_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KEYS_OF_TEST", "one,two,three")
    keys: dict[str, Json] = {"env-3": {"compress": {"enabled": False}}}
    more: dict[str, Json] = {"server": {"api_keys_env": "KEYS_OF_TEST"}, "keys": keys}
    async with compressing_gateway(more) as (agent, model):

        async def ask(key: str, rounds: int) -> bool:
            await agent.ask(agent_history(rounds), authorization=f"Bearer {key}")
            return is_summarised(model)

        assert [await ask("one", LONG + number) for number in range(3)] == [False, False, True]
        assert [await ask("two", LONG + 2), await ask("three", LONG + 2)] == [False, False]
        assert len(model.summarised) == 1
        assert [await ask("two", LONG + 3), await ask("two", LONG + 4)] == [False, True]
        assert [await ask("three", LONG + number) for number in range(3)] == [False] * 3
        assert len(model.summarised) == 2


async def test_another_model_may_write_the_summaries() -> None:
    models: Json = {
        "m": {"backend": "b", "context_length": 20_000},
        "small": {"backend": "b", "name": "small-1", "context_length": 50_000, "compress": {"enabled": False}},
    }
    async with compressing_gateway({"models": models}, model="small") as (agent, model):
        await summarised(agent, model)
        assert [body["model"] for body in model.summarised] == ["small-1"]
        await agent.ask(agent_history(LONG + 2))
        assert is_summarised(model) and model.answered[-1]["model"] == "m"


async def test_a_stop_of_the_gateway_ends_what_is_being_written(caplog: pytest.LogCaptureFixture) -> None:
    async with compressing_gateway() as (agent, model):
        model.gate.clear()
        await agent.ask(agent_history(LONG))
        await agent.ask_only(agent_history(LONG + 1))
        await model.has_begun()
        agent.gateway.app.gateway_state.drain()
        await agent.settled()
        summaries = agent.gateway.app.gateway_state.summaries
        assert summaries is not None and not summaries.running
    assert "SUMMARY_STORED" not in caplog.text and "internal_error" not in caplog.text


async def test_what_a_key_has_is_forgotten_while_its_summary_is_written(caplog: pytest.LogCaptureFixture) -> None:
    async with compressing_gateway() as (agent, model):
        model.gate.clear()
        await agent.ask(agent_history(LONG))
        await agent.ask_only(agent_history(LONG + 1))
        await model.has_begun()
        store = agent.gateway.app.gateway_state.store
        await store.forget("-")
        model.gate.set()
        await agent.settled()
        assert rules_told(caplog)[-1] == "SUMMARY_FAILED"
        # Nothing but the tokens that this day has cost.
        assert [(usage.space, usage.entries) for usage in (await store.stats()).usage] == [("idx", 1)]
        await agent.ask(agent_history(LONG + 2))
        assert model.sent == agent_history(LONG + 2)


async def test_a_summary_is_continued_by_the_next_one() -> None:
    async with compressing_gateway() as (agent, model):
        for rounds in range(LONG, LONG + 40):
            await agent.ask(agent_history(rounds))
        first, second = (json.loads(body["messages"][1]["content"].split("\n")[0]) for body in model.summarised[:2])
        assert first["n"] == 1
        assert "summary_of_turns" in second
        assert "/srv/app/module_0.py" in json.dumps(model.sent)


async def test_the_same_request_is_sent_with_the_same_bytes() -> None:
    async with compressing_gateway() as (agent, model):
        await summarised(agent, model)
        for _ in range(3):
            await agent.ask(agent_history(LONG + 2))
        assert model.bodies[-1] == model.bodies[-2] == model.bodies[-3]


@pytest.mark.parametrize("failing", ["epoch", "get", "put", "acquire", "commit", "renew", "extend"])
async def test_the_store_fails_and_every_answer_is_as_before(
    failing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailable("down", failing)

    async with compressing_gateway() as (agent, model):
        monkeypatch.setattr(MemoryStore, failing, fail)
        for rounds in range(LONG, LONG + 4):
            history = agent_history(rounds)
            assert await agent.ask(history) == "Noted."
            assert is_summarised(model) or model.sent == history
        assert len(model.summarised) <= 1
        assert "internal_error" not in caplog.text


async def explained(agent: Agent, rounds: int, **headers: str) -> dict[str, Any]:
    body = {"model": "m", "messages": agent_history(rounds)}
    response = await agent.gateway.client.post("/v1/explain", json=body, headers=headers)
    assert response.status_code == 200, response.text
    explanation: dict[str, Any] = response.json()
    return explanation


async def test_explain_tells_what_is_known_of_a_history_at_every_stage() -> None:
    async with compressing_gateway() as (agent, model):
        before = (await explained(agent, LONG))["state"]["summary"]
        assert (before["window"], before["trigger"], before["ratio"]) == (20_000, 12_000, 1.0)
        assert before["estimate"] > 12_000 and before["why_not"] == "unseen" and before["boundaries"] == []
        await agent.ask(agent_history(LONG))
        seen = (await explained(agent, LONG + 1))["state"]["summary"]
        assert seen["root"] == before["root"] and seen["why_not"] is None
        (boundary,) = seen["boundaries"]
        assert (boundary["outcome"], boundary["sightings"], boundary["present"]) == ("candidate", 1, True)
        assert boundary["turns"] == seen["would_cover"]["turns"]
        model.gate.clear()
        await agent.ask_only(agent_history(LONG + 1))
        await model.has_begun()
        assert (await explained(agent, LONG + 1))["state"]["summary"]["why_not"] == "running"
        model.gate.set()
        await agent.settled()
        explanation = await explained(agent, LONG + 2)
        after = explanation["state"]["summary"]
        assert after["why_not"] == "below" and after["estimate"] < 12_000 and after["would_cover"] is None
        assert after["applied"]["turns"] == boundary["turns"]
        assert after["applied"]["text"] in [message["content"] for message in explanation["wire"]]
        assert len(model.summarised) == 1
        assert (await explained(agent, 3))["state"]["summary"]["why_not"] == "below"
        off = await explained(agent, LONG + 2, **{"x-dragoman-state": "off"})
        assert off["state"]["summary"]["why_not"] == "off" and off["state"]["summary"]["applied"] is None


@pytest.mark.parametrize(
    ("compress", "why"), [({"tokens_per_day": 5000}, "budget"), ({"sightings": 4}, "unseen"), ({"sightings": 1}, None)]
)
async def test_explain_tells_why_no_job_would_start(compress: dict[str, Json], why: str | None) -> None:
    async with compressing_gateway({}, **compress) as (agent, _):
        if why is not None:
            await agent.ask(agent_history(LONG))
            await agent.ask(agent_history(LONG + 1))
        assert (await explained(agent, LONG + 1))["state"]["summary"]["why_not"] == why


async def test_explain_tells_of_a_failed_attempt() -> None:
    async with compressing_gateway() as (agent, model):
        model.summarise = lambda _: ""
        await summarised(agent, model)
        assert (await explained(agent, LONG + 1))["state"]["summary"]["why_not"] == "backoff"


async def test_explain_tells_when_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailable("down", "of the test")

    async with compressing_gateway() as (agent, _):
        monkeypatch.setattr(MemoryStore, "epoch", fail)
        assert (await explained(agent, LONG))["state"]["summary"]["why_not"] == "store"


async def test_a_record_that_cannot_be_read_in_time_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with compressing_gateway() as (agent, model):
        await summarised(agent, model)
        read = GuardedStore.get

        async def slow(store: GuardedStore, tenant: str, space: Space, *rest: Any, **more: Any) -> list[Entry | None]:
            if space == "sum":
                raise StoreUnavailable("slow", "of the test")
            return await read(store, tenant, space, *rest, **more)

        monkeypatch.setattr(GuardedStore, "get", slow)
        for _ in range(3):
            await agent.ask(agent_history(LONG + 2))
            assert model.sent == agent_history(LONG + 2)
        monkeypatch.setattr(GuardedStore, "get", read)
        await agent.ask(agent_history(LONG + 2))
        assert is_summarised(model) and len(model.summarised) == 1


async def test_a_record_that_is_lost_is_written_again() -> None:
    async with compressing_gateway() as (agent, model):
        await summarised(agent, model)
        digest = (await explained(agent, LONG + 2))["state"]["summary"]["applied"]["digest"]
        store = agent.gateway.app.gateway_state.store
        await store.delete("-", "sum", [shared_key(bytes.fromhex(digest))])
        for rounds in range(LONG + 2, LONG + 5):
            await agent.ask(agent_history(rounds))
        assert is_summarised(model) and len(model.summarised) == 2
