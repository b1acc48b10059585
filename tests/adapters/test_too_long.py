"""A prompt that is too long is told in one way, whatever wire and form of an error a provider says it in."""

import json
from typing import Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from gateway.adapter import Adapter
from gateway.core.context_length import Overflow
from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from tests.tiers import sample

_MAX: Final = 1 << 20
WIRES: Final[dict[str, Adapter]] = {
    "chat": OpenAIChatAdapter(OpenAIChatOptions(), _MAX),
    "messages": AnthropicMessagesAdapter(AnthropicMessagesOptions(), _MAX),
    "responses": OpenAIResponsesAdapter(OpenAIResponsesOptions(), _MAX),
    "gemini": GeminiAdapter(GeminiOptions(), _MAX),
    "text": TextAdapter(TextOptions(wire="llama_cpp"), _MAX),
}
XAI: Final = "This model's maximum prompt length is 131072 but the request contains 200000 tokens."
SGLANG: Final = "The input (5000 tokens) is longer than the model's context length (4096 tokens)."
MISTRAL: Final = (
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"
)
# Error bodies in the forms of their providers.
BODIES: Final[dict[str, tuple[Json, Overflow]]] = {
    "openai": ({"error": {"message": "Too long.", "code": "context_length_exceeded"}}, Overflow(None, None)),
    "sglang": ({"error": {"message": SGLANG, "type": "BadRequestError", "code": 400}}, Overflow(5000, 4096)),
    "xai": ({"code": "Client specified an invalid argument", "error": XAI}, Overflow(200_000, 131_072)),
    "lm studio": ({"error": XAI}, Overflow(200_000, 131_072)),
    "mistral": ({"object": "error", "message": {"detail": [{"msg": MISTRAL, "loc": []}]}}, Overflow(40_000, 32_768)),
    "fastapi": ({"detail": SGLANG}, Overflow(5000, 4096)),
    "cerebras": ({"message": SGLANG, "type": "invalid_request_error", "param": "messages"}, Overflow(5000, 4096)),
    "google": ([{"error": {"code": 400, "message": SGLANG, "status": "INVALID_ARGUMENT"}}], Overflow(5000, 4096)),
    "anthropic": (
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
        },
        Overflow(9, 8),
    ),
    "llama.cpp": (
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "no",
                "n_prompt_tokens": 9,
                "n_ctx": 8,
            }
        },
        Overflow(9, 8),
    ),
    "minimax": (
        {"base_resp": {"status_code": 2013, "status_msg": "invalid params, context window exceeds limit (2013)"}},
        Overflow(None, None),
    ),
}


@sample()
@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("provider", BODIES)
@pytest.mark.parametrize("wire", WIRES)
def test_a_prompt_that_is_too_long_is_one_in_every_form(wire: str, provider: str, status: int) -> None:
    body, overflow = BODIES[provider]
    asked = Conversation((Turn("user", (Text("hi"),)),), model="m")
    exchange = Exchange(WIRES[wire], asked, Policy())
    with pytest.raises(BackendError) as caught:
        exchange.on_response_head(status, {"content-type": "application/json"}, json.dumps(body).encode())
    error = caught.value
    assert (error.status, error.code) == (400, "context_length_exceeded")
    assert isinstance(error.too_long, Overflow)
    assert (error.too_long.limit == overflow.limit) or overflow.limit is None
    assert error.message.startswith("prompt is too long")
    assert [notice.rule for notice in error.notices] == ["CONTEXT_OVERFLOW"]
