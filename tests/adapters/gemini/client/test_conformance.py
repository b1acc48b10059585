"""The dialect kit over Gemini, for both forms of a stream."""

from typing import Final

import msgspec
import pytest

from adapters.gemini.client.dialect import GeminiDialect
from gateway.testing.dialect_checks import CHECKS, DialectCase, DialectCheck
from tests.adapters.gemini.client import client
from tests.tiers import sample

CASE: Final = DialectCase(
    GeminiDialect,
    client.write,
    client.read_events,
    client.read_whole,
    client.read_error,
    client.read_models,
    finishes={"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY"},
    write_target=client.events_target,
    lacks=frozenset({"parallel_tool_calls", "strict", "user", "service_tier", "developer", "later system"}),
    provider="google",
)
ARRAY: Final = msgspec.structs.replace(CASE, read_stream=client.read_array, write_target=client.array_target)


@sample()
@pytest.mark.parametrize("case", [CASE, ARRAY], ids=["events", "array"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_gemini_conforms(check: DialectCheck, case: DialectCase) -> None:
    check(case)
