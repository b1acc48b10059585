"""Tests which requests ask their provider for a compaction."""

import json

import pytest

from adapters.anthropic_messages.client.decode import decode_document as decode_messages
from adapters.openai_chat.client.decode import decode as decode_chat
from adapters.openai_responses.client.decode import decode_document as decode_responses
from gateway.core.conversation import Conversation
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.memory.summaries.substitution import asks_for_compaction


def messages(management: object) -> Conversation:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    document = read_document(json.dumps({**body, "context_management": management}).encode())
    return decode_messages(document, RequestHead("/v1/messages")).conversation


def responses(management: object) -> Conversation:
    body = {"model": "m", "input": "hi", "context_management": management}
    return decode_responses(read_document(json.dumps(body).encode())).conversation


def chat(management: object) -> Conversation:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "context_management": management}
    return decode_chat(json.dumps(body).encode())


COMPACT = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 100_000}}
CLEAR = {"type": "clear_tool_uses_20250919"}
THINKING = {"type": "clear_thinking_20251015", "keep": "all"}


@pytest.mark.parametrize(
    "asked",
    [
        responses([{"type": "compaction", "compact_threshold": 200_000}]),
        messages({"edits": [COMPACT]}),
        messages({"edits": [THINKING, COMPACT]}),
        chat([{"type": "compaction", "compact_threshold": 1_000}]),
    ],
)
def test_a_request_that_asks_for_a_compaction_is_recognised(asked: Conversation) -> None:
    assert asks_for_compaction(asked)


@pytest.mark.parametrize(
    "asked",
    [
        responses(None),
        responses([]),
        messages({"edits": [THINKING, CLEAR]}),
        messages({"edits": []}),
        messages({}),
        chat("compaction"),
        chat(["compaction", {"type": 3}, {}]),
        Conversation(()),
    ],
)
def test_one_that_clears_old_results_or_thinking_only_is_not(asked: Conversation) -> None:
    assert not asks_for_compaction(asked)
