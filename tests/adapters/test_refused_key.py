"""A key that a backend refuses inside a response is the operator's to correct, on every wire, whoever refuses it.

Sources: each provider's page of error codes (OpenAI, Anthropic, Google, DeepSeek, Moonshot, Z.ai, xAI, Cerebras, Azure,
OpenRouter, Alibaba, MiniMax).
"""

from collections.abc import Callable
from typing import Final

import msgspec
import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from gateway.adapter import Adapter
from gateway.core.backend_status import status_error
from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from tests.tiers import sample

_MAX: Final = 1 << 20
_CHAT: Final = OpenAIChatAdapter(OpenAIChatOptions(), _MAX)
_MESSAGES: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), _MAX)
_RESPONSES: Final = OpenAIResponsesAdapter(OpenAIResponsesOptions(), _MAX)
_GEMINI: Final = GeminiAdapter(GeminiOptions(), _MAX)
_TEXT: Final = TextAdapter(TextOptions(wire="llama_cpp"), _MAX)


def _json(document: Json) -> bytes:
    return msgspec.json.encode(document)


def _event(document: Json) -> bytes:
    return b"data: " + _json(document) + b"\n\n"


# What a backend sends with status 200 to report an error object.
WIRES: Final[dict[str, tuple[Adapter, Callable[[Json], bytes]]]] = {
    "chat": (_CHAT, lambda error: _json({"error": error})),
    "chat stream": (_CHAT, lambda error: _event({"error": error})),
    "messages": (_MESSAGES, lambda error: _json({"type": "error", "error": error})),
    "messages stream": (_MESSAGES, lambda error: _event({"type": "error", "error": error})),
    "responses": (_RESPONSES, lambda error: _json({"id": "r", "status": "failed", "output": [], "error": error})),
    "responses stream": (
        _RESPONSES,
        lambda error: _event({"type": "response.failed", "response": {"id": "r", "status": "failed", "error": error}}),
    ),
    "responses error event": (_RESPONSES, lambda error: _event({"type": "error", "error": error})),
    "gemini": (_GEMINI, lambda error: _json({"error": error})),
    "gemini stream": (_GEMINI, lambda error: _event({"error": error})),
    "text stream": (_TEXT, lambda error: _event({"error": error})),
}
REFUSALS: Final[dict[str, Json]] = {
    "openai": {
        "message": "Incorrect API key provided: sk-1. You can find your API key in your account.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    },
    "anthropic": {"type": "authentication_error", "message": "invalid x-api-key"},
    "google": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"},
    "google, a word alone": {"message": "Request had invalid credentials.", "status": "UNAUTHENTICATED"},
    "deepseek": {
        "message": "Authentication Fails (no such user)",
        "type": "authentication_error",
        "code": "invalid_request_error",
    },
    "kimi": {"message": "Invalid Authentication", "type": "invalid_authentication_error"},
    "glm": {"code": "1000", "message": "Authentication Failed"},
    "xai": {"code": "Client specified an invalid argument", "message": "Incorrect API key provided: xa***."},
    "cerebras": {
        "message": "Wrong API Key",
        "type": "invalid_request_error",
        "param": "api_key",
        "code": "wrong_api_key",
    },
    "azure": {
        "code": "401",
        "message": "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a key.",
    },
    "openrouter": {"code": 401, "message": "No auth credentials found"},
    "qwen": {"code": "InvalidApiKey", "message": "Invalid API-key provided."},
    "llama.cpp": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"},
    "a word": "Unauthorized",
}


def _raised(wire: str, error: Json) -> BackendError:
    adapter, form = WIRES[wire]
    exchange = Exchange(adapter, Conversation((Turn("user", (Text("hi"),)),), model="m"), Policy())
    with pytest.raises(BackendError) as caught:
        exchange.feed(form(error))
        exchange.close()
    return caught.value


@sample()
@pytest.mark.parametrize("provider", REFUSALS)
@pytest.mark.parametrize("wire", WIRES)
def test_a_refused_key_inside_a_response_is_the_operators_to_correct(wire: str, provider: str) -> None:
    error = _raised(wire, REFUSALS[provider])
    assert (error.status, error.code, error.transient) == (502, "upstream_auth_error", False)
    assert [notice.rule for notice in error.notices] == ["BACKEND_CREDENTIAL"]
    assert "refused the gateway's credential" in error.message


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "said",
    [
        {"message": "The image could not be read: 401 Unauthorized", "type": "image_error"},
        {"message": "Unknown tool 'invalid api key'", "code": "tool_error"},
    ],
)
def test_words_about_something_else_are_another_failure(wire: str, said: Json) -> None:
    assert _raised(wire, said).code != "upstream_auth_error"


@pytest.mark.parametrize("provider", ["google", "xai"])
def test_a_400_that_refuses_the_key_is_one_too(provider: str) -> None:
    said = REFUSALS[provider]
    assert isinstance(said, dict)
    error = status_error(400, {}, message=str(said["message"]), fields=said)
    assert (error.status, error.code) == (502, "upstream_auth_error")
