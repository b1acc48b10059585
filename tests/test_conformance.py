"""The conformance kit over every adapter of the house; tests/examples shows it on one from elsewhere."""

import pkgutil
from pathlib import Path

import pytest

from gateway.dialects.openai_chat.decode import decode
from gateway.testing.conformance import CHECKS, Case, Check
from gateway.testing.golden import read_golden
from tests.golden_forms import FORMS

GOLDEN = Path(__file__).parent / "golden"

# Complete and flawless answers, so that they may be cut off and damaged.
SCENARIOS = (
    "warp_parallel_calls",
    "warp_plain_answer",
    "warp_reasoning_and_usage",
    "warp_rollback",
    "warp_structured_round_trip",
)


def _case(name: str) -> Case:
    golden = read_golden(GOLDEN / name, FORMS)
    scenario = golden.scenario
    return Case(
        name,
        pkgutil.resolve_name(scenario.adapter),
        golden.wire,
        conversation=decode(golden.request),
        policy=scenario.policy,
        options=scenario.options,
    )


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", [_case(name) for name in SCENARIOS], ids=str)
def test_an_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
