"""The dialect kit over Interactions, with a client that checks every rule of the stream."""

from typing import Final

import pytest

from adapters.gemini_interactions.client.dialect import GeminiInteractionsDialect
from gateway.testing.dialect_checks import CHECKS, DialectCase, DialectCheck
from tests.adapters.gemini_interactions.client import client
from tests.tiers import sample

CASE: Final = DialectCase(
    GeminiInteractionsDialect,
    client.write,
    client.read_stream,
    client.read_whole,
    client.read_error,
    client.read_models,
    finishes={
        "stop": "completed",
        "length": "incomplete",
        "tool_calls": "requires_action",
        "content_filter": "incomplete: content_filter",
    },
    lists_models=False,
    lacks=frozenset(
        {
            *("top_k", "presence_penalty", "frequency_penalty", "parallel_tool_calls", "strict", "user"),
            *("developer", "later system"),
        }
    ),
    provider="google",
)


@sample()
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_interactions_conform(check: DialectCheck) -> None:
    check(CASE)
