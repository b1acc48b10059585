"""An image reaches each wire in the one form that its API reads, however its client wrote it."""

import json
from typing import Final

import pytest

from adapters.anthropic_messages import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.gemini import GeminiAdapter, GeminiOptions
from adapters.openai_chat import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_responses import OpenAIResponsesAdapter, OpenAIResponsesOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Image, Json, Text, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.dialects.anthropic_messages.dialect import AnthropicMessagesDialect
from gateway.dialects.base import Dialect, RequestHead
from gateway.dialects.document import read_document
from gateway.dialects.gemini.dialect import GeminiDialect
from gateway.dialects.openai_chat.dialect import OpenAIChatDialect
from gateway.exchange import Exchange

LIMIT: Final = 1 << 20
ADAPTERS: Final[dict[str, tuple[Adapter, str]]] = {
    "openai_chat": (
        OpenAIChatAdapter(OpenAIChatOptions(), LIMIT),
        '{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,/9j/4Pv/"}}',
    ),
    "openai_responses": (
        OpenAIResponsesAdapter(OpenAIResponsesOptions(), LIMIT),
        '{"type":"input_image","image_url":"data:image/jpeg;base64,/9j/4Pv/","detail":"auto"}',
    ),
    "anthropic_messages": (
        AnthropicMessagesAdapter(AnthropicMessagesOptions(), LIMIT),
        '{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/4Pv/"}}',
    ),
    "gemini": (
        GeminiAdapter(GeminiOptions(), LIMIT),
        '{"inlineData":{"mimeType":"image/jpeg","data":"/9j/4Pv/"}}',
    ),
}
URLS: Final = (
    "data:image/jpeg;base64,/9j/4Pv/",
    "DATA:image/JPG;BASE64,/9j/4Pv/",
    "data:image/jpeg;base64,_9j_4Pv_",
    "data:image/jpg;name=a.jpg;base64,/9j/4Pv/",
    "data:image/jpeg,%FF%D8%FF%E0%FB%FF",
    "data:image/jpeg;base64,/9j/\n4Pv/",
)


@pytest.mark.parametrize("wire", ADAPTERS)
@pytest.mark.parametrize("url", URLS)
def test_every_form_of_a_data_url_is_sent_in_the_form_of_the_api(wire: str, url: str) -> None:
    adapter, expected = ADAPTERS[wire]
    asked = Conversation((Turn("user", (Text("Look."), Image(url)), index=0),))
    assert expected in Exchange(adapter, asked, Policy()).request.body.decode()


@pytest.mark.parametrize("wire", ADAPTERS)
@pytest.mark.parametrize("url", ["data:image/png;base64,!", "data:text/plain;base64,aGk=", "data:image/png"])
def test_a_data_url_without_an_image_is_refused_by_its_path_on_every_wire(wire: str, url: str) -> None:
    asked = Conversation((Turn("user", (Text("Look."), Image(url)), index=0),))
    with pytest.raises(InvalidRequest) as caught:
        Exchange(ADAPTERS[wire][0], asked, Policy())
    assert caught.value.param == "messages[0].content[1]"


# As google-genai for Python writes the bytes of a JPEG: base64 of the alphabet for URLs.
OF_CLIENTS: Final[dict[str, tuple[Dialect, dict[str, Json]]]] = {
    "gemini": (
        GeminiDialect(),
        {"contents": [{"parts": [{"inlineData": {"mimeType": "image/jpeg", "data": "_9j_4Pv_"}}]}]},
    ),
    "openai_chat": (
        OpenAIChatDialect(),
        {
            "model": "m",
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/jpg;base64,_9j_4Pv_"}}],
                }
            ],
        },
    ),
    "anthropic_messages": (
        AnthropicMessagesDialect(),
        {
            "model": "m",
            "max_tokens": 9,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/jpg", "data": "/9j/\r\n4Pv/"},
                        }
                    ],
                }
            ],
        },
    ),
}


# The same API receives what its client wrote.
@pytest.mark.parametrize(
    ("client", "wire"), [(client, wire) for client in OF_CLIENTS for wire in ADAPTERS if client != wire]
)
def test_the_image_of_each_client_is_readable_on_every_other_wire(client: str, wire: str) -> None:
    dialect, body = OF_CLIENTS[client]
    head = RequestHead("/v1beta/models/m:generateContent" if client == "gemini" else "/")
    asked = dialect.decode(read_document(json.dumps(body).encode()), head).conversation
    adapter, expected = ADAPTERS[wire]
    assert expected in Exchange(adapter, asked, Policy()).request.body.decode()
