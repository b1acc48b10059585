from typing import Final

import pytest

from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from gateway.testing.dialect_checks import CHECKS, DialectCase, DialectCheck
from tests.adapters.anthropic_messages.client.client import read_error, read_models, read_stream, read_whole, write

CASE: Final = DialectCase(
    AnthropicMessagesDialect,
    write,
    read_stream,
    read_whole,
    read_error,
    read_models,
    finishes={
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
    },
    lacks=frozenset({"seed", "presence_penalty", "frequency_penalty", "service_tier", "developer"}),
    provider="anthropic",
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_anthropic_messages_conforms(check: DialectCheck) -> None:
    check(CASE)
