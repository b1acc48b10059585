"""Images and documents reach each wire in the words of its API, however their client wrote them."""

import json
from typing import Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.gemini.client.dialect import GeminiDialect
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, File, Image, Json, Text, Turn
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.policy import Policy
from gateway.dialect import Dialect, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES

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


def _asks(*parts: Json, **fields: Json) -> dict[str, Json]:
    return {"model": "m", "messages": [{"role": "user", "content": [*parts]}], **fields}


# As google-genai for Python writes the bytes of a JPEG: base64 of the alphabet for URLs.
OF_CLIENTS: Final[dict[str, tuple[Dialect, dict[str, Json]]]] = {
    "gemini": (
        GeminiDialect(),
        {"contents": [{"parts": [{"inlineData": {"mimeType": "image/jpeg", "data": "_9j_4Pv_"}}]}]},
    ),
    "openai_chat": (
        OpenAIChatDialect(),
        _asks({"type": "image_url", "image_url": {"url": "data:image/jpg;base64,_9j_4Pv_"}}),
    ),
    "anthropic_messages": (
        AnthropicMessagesDialect(),
        _asks(
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpg", "data": "/9j/\r\n4Pv/"}},
            max_tokens=9,
        ),
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


PDF: Final = "JVBERi0xLjQK"
DOCUMENTS: Final[dict[str, tuple[Dialect, dict[str, Json]]]] = {
    "gemini": (
        GeminiDialect(),
        {
            "contents": [
                {
                    "parts": [
                        {"inlineData": {"mimeType": "application/pdf", "data": PDF, "displayName": "a.pdf"}},
                        {"text": "sum"},
                    ]
                }
            ]
        },
    ),
    "openai_chat": (
        OpenAIChatDialect(),
        _asks(
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
            {"type": "text", "text": "sum"},
        ),
    ),
    "openai_responses": (
        OpenAIResponsesDialect(),
        {
            "model": "m",
            "input": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "input_file",
                            "filename": "a.pdf",
                            "file_data": f"data:application/pdf;base64,{PDF}",
                        },
                        {"type": "input_text", "text": "sum"},
                    ],
                }
            ],
        },
    ),
    "anthropic_messages": (
        AnthropicMessagesDialect(),
        _asks(
            {
                "type": "document",
                "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            },
            {"type": "text", "text": "sum"},
            max_tokens=9,
        ),
    ),
}
SENT_DOCUMENTS: Final = {
    "gemini": f'{{"inlineData":{{"mimeType":"application/pdf","data":"{PDF}"}}}}',
    "openai_chat": f'{{"type":"file","file":{{"filename":"a.pdf","file_data":"data:application/pdf;base64,{PDF}"}}}}',
    "openai_responses": f'{{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,{PDF}"}}',
    "anthropic_messages": '{"type":"document","source":{"type":"base64","media_type":"application/pdf",'
    f'"data":"{PDF}"}},"title":"a.pdf"}}',
}
OPENAI: Final = Policy(profile=PROFILES["openai"])


def _conversation(client: str) -> Conversation:
    dialect, body = DOCUMENTS[client]
    head = RequestHead("/v1beta/models/m:generateContent" if client == "gemini" else "/")
    return dialect.decode(read_document(json.dumps(body).encode()), head).conversation


@pytest.mark.parametrize(
    ("client", "wire"), [(client, wire) for client in DOCUMENTS for wire in ADAPTERS if client != wire]
)
def test_the_pdf_of_each_client_reaches_every_other_wire_in_its_words(client: str, wire: str) -> None:
    policy = OPENAI if wire == "openai_chat" else Policy()
    assert SENT_DOCUMENTS[wire] in Exchange(ADAPTERS[wire][0], _conversation(client), policy).request.body.decode()


@pytest.mark.parametrize("client", ["gemini", "anthropic_messages", "openai_responses"])
def test_a_pdf_is_not_sent_to_a_compatible_server_that_is_not_known_to_take_it(client: str) -> None:
    adapter, _ = ADAPTERS["openai_chat"]
    with pytest.raises(Unsupported):
        Exchange(adapter, _conversation(client), Policy())
    made = Exchange(adapter, _conversation(client), Policy(images="placeholder"))
    assert PDF not in made.request.body.decode()
    assert [notice.rule for notice in made.notices] == ["PART_NOT_SENT"]


def test_a_document_by_its_address_is_sent_where_the_api_fetches_it() -> None:
    url = "https://example.org/a.pdf"
    part = {"type": "input_file", "file_url": url}
    asked = Conversation((Turn("user", (File("input_file", part, url=url),), index=0),))
    body = Exchange(ADAPTERS["anthropic_messages"][0], asked, Policy()).request.body.decode()
    assert f'{{"type":"document","source":{{"type":"url","url":"{url}"}}}}' in body
    with pytest.raises(Unsupported):
        Exchange(ADAPTERS["gemini"][0], asked, Policy())
