"""A real model writes summaries of an agent's history for another model. It is far too small to do it well: without a
schema its answer is refused or used as it deserves; held to the schema of a summary, it is used, and what the gateway
adds to it keeps what was said, forbidden, cancelled and returned as an error."""

import logging
import re

import pytest

from gateway.core.conversation import Json
from gateway.local import MODEL, LocalModel, settings_for_model
from gateway.testing.faulty import faulty_backend
from gateway.testing.gateway import running_gateway
from tests.server.summaries.scripted import WINDOW, Agent, Messages, ScriptedModel, rules_told
from tests.server.summaries.test_summaries import is_summarised

pytestmark = pytest.mark.local

# What the model server was started with.
CONTEXT = 4096


def history(rounds: int) -> Messages:
    """Returns a history whose results are long: the job sees their beginnings and ends."""
    messages: Messages = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Find out why the shop is slow. Never restart the database."},
    ]
    for number in range(rounds):
        call: Json = {"id": f"call_{number}", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}
        log = "\n".join(f"request {number}-{line} took {line * 37 % 900} ms, cache was cold" for line in range(220))
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": log},
            {"role": "assistant", "content": f"Log {number} shows a cold cache."},
        ]
    return messages


async def test_a_real_model_writes_the_summary(model_server: LocalModel, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")
    model = ScriptedModel()
    async with faulty_backend(model.script) as backend:
        local = settings_for_model(model_server.base_url)
        backends, models = local["backends"], local["models"]
        assert isinstance(backends, dict) and isinstance(models, dict)
        settings: dict[str, Json] = {
            "compress": {"enabled": True, "model": MODEL, "deadline_s": 900},
            "state": {"deadline_ms": 10_000},
            "backends": {**backends, "b": {"adapter": "openai_chat", "base_url": backend.base_url}},
            "models": {
                "m": {"backend": "b", "context_length": WINDOW},
                MODEL: {"backend": "local", "context_length": CONTEXT, "compress": {"enabled": False}},
            },
        }
        async with running_gateway(settings) as gateway:
            agent = Agent(gateway)
            for rounds in range(5, 8):
                await agent.ask(history(rounds))
            rules = rules_told(caplog)
            assert rules[:2] == ["SUMMARY_CANDIDATE", "SUMMARY_STARTED"] and not model.summarised
            assert rules[2] in ("SUMMARY_STORED", "SUMMARY_REJECTED"), caplog.text
            # The request that started the job was sent before its summary was there.
            await agent.ask_only(history(8))
            assert is_summarised(model) is (rules[2] == "SUMMARY_STORED")
            counted = re.findall(
                r'gateway_summary_tokens_total\{backend="local",key="-",kind="(\w+)"\} (\S+)', await agent.metrics()
            )
            tokens = {kind: float(number) for kind, number in counted}
            assert tokens["prompt"] > 800 and tokens["completion"] > 0


PLANTED = {
    "path": "/srv/shop/config/tls.yaml",
    "prohibition": "Never restart the database.",
    "cancelled": "Cancel the move to Postgres 17.",
    "error": "Error: connect ECONNREFUSED 10.0.0.7:5432",
}


def sixty_rounds(rounds: int) -> Messages:
    """Returns the history of an agent with short rounds, whose user speaks at its beginning."""
    messages: Messages = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": f"Repair {PLANTED['path']}. {PLANTED['prohibition']}"},
    ]
    for number in range(rounds):
        if number == 2:
            messages.append({"role": "user", "content": f"{PLANTED['cancelled']} Go on with the repair."})
        arguments = f'{{"path": "/srv/shop/part_{number}.py"}}'
        call: Json = {"id": f"call_{number}", "type": "function", "function": {"name": "read", "arguments": arguments}}
        body = "".join(f"line {line} of part {number} sets option {line * 7 % 11}\n" for line in range(120))
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"call_{number}",
                "content": f"{PLANTED['error']}\n" if number == 4 else body,
            },
        ]
    return messages


async def test_a_real_model_that_is_held_to_the_schema_shortens_sixty_rounds(
    model_server: LocalModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway")
    model = ScriptedModel()
    async with faulty_backend(model.script) as backend:
        local = settings_for_model(model_server.base_url)
        backends, models = local["backends"], local["models"]
        assert isinstance(backends, dict) and isinstance(models, dict)
        settings: dict[str, Json] = {
            "compress": {"enabled": True, "model": MODEL, "deadline_s": 900, "json_schema": True, "least_gain": 0.05},
            "state": {"deadline_ms": 10_000},
            "backends": {**backends, "b": {"adapter": "openai_chat", "base_url": backend.base_url}},
            "models": {
                "m": {"backend": "b", "context_length": 80_000},
                MODEL: {"backend": "local", "context_length": CONTEXT, "compress": {"enabled": False}},
            },
        }
        async with running_gateway(settings) as gateway:
            agent = Agent(gateway)
            for rounds in range(54, 61):
                await agent.ask(sixty_rounds(rounds))
            assert "SUMMARY_STORED" in rules_told(caplog), caplog.text
            sent = model.sent
            assert len(sent) < len(sixty_rounds(60)) - 10
            said = sent[1]
            assert isinstance(said, dict)
            summary = str(said["content"])
            assert {name: text in summary for name, text in PLANTED.items()} == dict.fromkeys(PLANTED, True), summary
