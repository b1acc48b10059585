"""Counts that no client can read count as not reported, on every wire."""

import json
from typing import Final

import pytest

from adapters.anthropic_messages.backend.decoder import MessagesDecoder
from adapters.gemini.backend.decoder import GeminiDecoder
from adapters.openai_chat.backend.decoder import ChatDecoder
from adapters.proto.backend.token_counts import Counts
from gateway.adapter import Decoder
from gateway.core.answer import merge_usage
from gateway.core.conversation import Json
from gateway.core.events import MOST_TOKENS, Event, UsageReport
from gateway.dialects.usage import usage_part
from gateway.testing.replay import replay
from tests.adapters.anthropic_messages.backend import wires as messages
from tests.adapters.gemini.backend import wires as gemini
from tests.adapters.openai_chat.backend import wires as chat
from tests.adapters.openai_responses.backend import wires as responses
from tests.adapters.openai_responses.backend.reading import played

MAX_EVENT: Final = 1 << 16
BIG: Final = (MOST_TOKENS + 1, 1 << 64, 1 << 70, 1e30)


def _chat(prompt: int) -> Json:
    return {"prompt_tokens": prompt, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": prompt}}


def _decoded(name: str, prompt: int) -> list[Event]:
    said = gemini.text("a")
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": 4, "cachedContentTokenCount": prompt}
    decoder: Decoder = ChatDecoder(MAX_EVENT, 1)
    match name:
        case "chat":
            wire = chat.completion({"content": "a"}, usage=_chat(prompt))
        case "chat stream":
            wire = chat.sse(chat.chunk({"content": "a"}, "stop", usage=_chat(prompt)))
        case "messages":
            usage: Json = {"input_tokens": prompt, "output_tokens": 4, "cache_read_input_tokens": prompt}
            decoder = MessagesDecoder(MAX_EVENT)
            wire = messages.message({"type": "text", "text": "a"}, usage=usage)
        case "gemini":
            decoder = GeminiDecoder(MAX_EVENT, 1, passes=False)
            wire = json.dumps(gemini.chunk(said, finish="STOP", usageMetadata=counts)).encode()
        case "gemini stream":
            decoder = GeminiDecoder(MAX_EVENT, 1, passes=False)
            wire = gemini.sse(gemini.chunk(said, usageMetadata=counts), gemini.chunk(finish="STOP"))
        case _:
            usage = {"input_tokens": prompt, "output_tokens": 4, "input_tokens_details": {"cached_tokens": prompt}}
            return played(responses.whole(responses.message("a"), usage=usage), "another")
    return replay(decoder, [wire])


@pytest.mark.parametrize("prompt", BIG)
@pytest.mark.parametrize("name", ["chat", "chat stream", "messages", "gemini", "gemini stream", "responses"])
def test_a_count_that_no_client_can_read_is_not_reported(name: str, prompt: int) -> None:
    merged: UsageReport | None = None
    for event in _decoded(name, prompt):
        if isinstance(event, UsageReport):
            merged = merge_usage(merged, event)
    assert merged is not None
    assert (merged.prompt_tokens, merged.completion_tokens) == (None, 4)
    assert usage_part(merged, "cached_tokens") is None


def test_the_sum_of_declared_counts_is_bounded_too() -> None:
    counted = Counts(prompt=MOST_TOKENS, completion=4, cached=1 << 63).combined(Counts(prompt=1), "sum")
    assert counted.report() == UsageReport(None, 4)
    assert Counts(prompt=MOST_TOKENS).report() == UsageReport(MOST_TOKENS)
