"""Text of an answer that is no text in JSON is an error or told, on every wire; it is never lost in silence."""

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
from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange import EMPTY_ANSWER, Exchange
from tests.adapters.anthropic_messages.backend import wires as messages
from tests.adapters.gemini.backend import wires as gemini
from tests.adapters.openai_chat.backend import wires as chat
from tests.adapters.openai_responses.backend import wires as responses
from tests.adapters.text.backend import answers
from tests.tiers import sample

_MAX: Final = 1 << 20
_CHAT: Final = OpenAIChatAdapter(OpenAIChatOptions(), _MAX)
_MESSAGES: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), _MAX)
_RESPONSES: Final = OpenAIResponsesAdapter(OpenAIResponsesOptions(), _MAX)
_GEMINI: Final = GeminiAdapter(GeminiOptions(), _MAX)
_ITEM: Final[dict[str, Json]] = {"type": "message", "id": "i", "role": "assistant", "status": "completed"}
# Answers whose text, or reasoning, is the marker.
MARKER: Final = "(text)"
WIRES: Final[dict[str, tuple[Adapter, bytes]]] = {
    "chat": (_CHAT, chat.completion({"content": MARKER})),
    "chat part": (_CHAT, chat.completion({"content": [{"type": "text", "text": MARKER}]})),
    "chat reasoning": (_CHAT, chat.completion({"content": "a", "reasoning_content": MARKER})),
    "chat reasoning, other name": (_CHAT, chat.completion({"content": "a", "reasoning": MARKER})),
    "chat thinking part": (_CHAT, chat.completion({"content": [{"type": "thinking", "thinking": MARKER}]})),
    "chat stream": (_CHAT, chat.sse(chat.chunk({"content": MARKER}), chat.chunk(finish="stop"))),
    "chat stream, part": (
        _CHAT,
        chat.sse(chat.chunk({"content": [{"type": "text", "text": MARKER}]}), chat.chunk(finish="stop")),
    ),
    "chat stream, reasoning": (
        _CHAT,
        chat.sse(chat.chunk({"reasoning_content": MARKER}), chat.chunk({"content": "a"}, "stop")),
    ),
    "messages": (_MESSAGES, messages.message({"type": "text", "text": MARKER})),
    "messages thinking": (_MESSAGES, messages.message({"type": "thinking", "thinking": MARKER, "signature": ""})),
    "messages stream": (
        _MESSAGES,
        messages.sse(messages.start(), *messages.block(0, messages.TEXT, *messages.text(MARKER)), *messages.end()),
    ),
    "messages stream, opening": (
        _MESSAGES,
        messages.sse(messages.start(), *messages.block(0, {"type": "text", "text": MARKER}), *messages.end()),
    ),
    "gemini": (_GEMINI, json.dumps(gemini.chunk(gemini.text(MARKER), finish="STOP")).encode()),
    "gemini stream": (_GEMINI, gemini.sse(gemini.chunk(gemini.text(MARKER), finish="STOP"))),
    "responses": (
        _RESPONSES,
        responses.whole({**_ITEM, "content": [{"type": "output_text", "text": MARKER, "annotations": []}]}),
    ),
    "responses reasoning": (
        _RESPONSES,
        responses.whole({"type": "reasoning", "id": "i", "summary": [{"type": "summary_text", "text": MARKER}]}),
    ),
    "responses refusal": (_RESPONSES, responses.whole({**_ITEM, "content": [{"type": "refusal", "refusal": MARKER}]})),
    "responses stream": (_RESPONSES, responses.streamed(*responses.text_events(0, MARKER))),
    "llama_cpp": (TextAdapter(TextOptions(wire="llama_cpp"), _MAX), answers.llama([MARKER])),
    "ollama": (TextAdapter(TextOptions(wire="ollama"), _MAX), answers.ollama([MARKER])),
    "tgi": (TextAdapter(TextOptions(wire="tgi"), _MAX), answers.tgi([MARKER])),
}


def _events(adapter: Adapter, wire: bytes) -> list[object]:
    asked = Conversation((Turn("user", (Text("hi"),)),), model="m", dialect="another")
    exchange = Exchange(adapter, asked, Policy())
    return [*exchange.feed(wire), *exchange.close()]


@sample()
@pytest.mark.parametrize("value", [5, True, {"value": "a"}, ["a"]], ids=json.dumps)
@pytest.mark.parametrize("name", WIRES)
def test_text_that_is_no_text_is_never_lost_in_silence(name: str, value: Json) -> None:
    adapter, wire = WIRES[name]
    written = json.dumps(MARKER).encode()
    assert written in wire
    try:
        events = _events(adapter, wire.replace(written, json.dumps(value).encode()))
    except BackendError as error:
        assert error.code in ("upstream_invalid_response", "upstream_invalid_event"), error.code
        return
    assert [event for event in events if isinstance(event, Notice) and event != EMPTY_ANSWER]


@pytest.mark.parametrize("name", WIRES)
def test_the_answers_are_sound_with_text(name: str) -> None:
    events = _events(*WIRES[name])
    assert MARKER in "".join([getattr(event, "text", "") for event in events])
