"""A real model writes the summary of an agent's history for another model. It is far too small to do it well: what is
held here is the path, and that a bad summary is refused and a good one used."""

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
            assert is_summarised(model) is (rules[2] == "SUMMARY_STORED")
            counted = re.findall(
                r'gateway_summary_tokens_total\{backend="local",key="-",kind="(\w+)"\} (\S+)', await agent.metrics()
            )
            tokens = {kind: float(number) for kind, number in counted}
            assert tokens["prompt"] > 800 and tokens["completion"] > 0
