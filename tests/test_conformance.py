"""Runs the conformance kit on every adapter of this repository, an external one, and the running demo backends."""

import pkgutil
from pathlib import Path

import msgspec
import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter
from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.client.decode import decode
from adapters.openai_responses.backend import OpenAIResponsesAdapter
from adapters.text.backend import TextAdapter
from adapters.warp.backend import WarpAdapter
from gateway.demo.serve import serve_demo
from gateway.testing.conformance import CHECKS, Case, Check
from gateway.testing.golden import read_golden
from gateway.testing.live import LIVE_CHECKS, LiveCase, LiveCheck
from tests.examples.test_parrot import CASES
from tests.golden_wires import READERS
from tests.tiers import sample

GOLDEN = Path(__file__).parent / "golden"

# Complete and flawless answers, so that they may be cut off and damaged.
SCENARIOS = (
    "openai_chat_json_answer",
    "openai_chat_parallel_calls",
    "openai_chat_plain_answer",
    "openai_chat_reasoning",
    "openai_chat_usage",
    "openai_responses_backend_parallel_calls",
    "openai_responses_backend_plain_answer",
    "openai_responses_backend_refusal",
    "openai_responses_backend_round_trip",
    "openai_responses_backend_unicode",
    "warp_parallel_calls",
    "warp_plain_answer",
    "warp_reasoning_and_usage",
    "warp_rollback",
    "warp_structured_round_trip",
)
LIVE = {
    "agent-flatten": ("agent", LiveCase(WarpAdapter, "")),
    "chat": ("chat", LiveCase(OpenAIChatAdapter, "")),
    "messages": ("messages", LiveCase(AnthropicMessagesAdapter, "")),
    "responses": ("responses", LiveCase(OpenAIResponsesAdapter, "")),
    "text": ("text", LiveCase(TextAdapter, "")),
    "agent-structured": ("agent", LiveCase(WarpAdapter, "", options={"encoding": "structured"})),
}


def _case(name: str) -> Case:
    golden = read_golden(GOLDEN / name, READERS)
    scenario = golden.scenario
    return Case(
        name,
        pkgutil.resolve_name(scenario.adapter),
        golden.wire,
        conversation=decode(golden.request),
        policy=scenario.policy,
        options=scenario.options,
    )


@sample()
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", [*(_case(name) for name in SCENARIOS), *CASES], ids=str)
def test_an_adapter_conforms(case: Case, check: Check) -> None:
    check(case)


@pytest.mark.parametrize("check", LIVE_CHECKS)
@pytest.mark.parametrize("name", LIVE)
async def test_an_adapter_speaks_with_its_demo_backend(name: str, check: LiveCheck) -> None:
    kind, case = LIVE[name]
    async with serve_demo(kind) as backend:
        await check(msgspec.structs.replace(case, base_url=backend.base_url))
