"""The name and the description that stand beside a JSON schema: sent, as the wire has them, or told."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from adapters.anthropic_messages.client.decode import decode_document as decode_messages
from adapters.gemini.client.decode import decode_document as decode_gemini
from adapters.ollama.client.decode import decode_chat as decode_ollama
from adapters.openai_chat.client.decode import decode_document as decode_chat
from adapters.openai_responses.client.decode import decode_document as decode_responses
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Json
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.exchange import Exchange
from gateway.registry import load_adapter
from gateway.settings import BackendSettings

HELLO: Final[Json] = [{"role": "user", "content": "hi"}]
NAMED: Final[dict[str, Json]] = {"name": "n", "description": "d"}
# Where the wire has the schema.
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "gemini": ("generationConfig", "responseJsonSchema"),
    "anthropic_messages": ("output_config", "format", "schema"),
}


def asked(client: str, said: Mapping[str, Json], schema: Json) -> Conversation:
    """The request of a client for an answer of this schema."""
    form: dict[str, Json] = {"type": "json_schema", "schema": schema}
    match client:
        case "text.format":
            document = Document({"input": "hi", "model": "m", "text": {"format": {**form, **said}}})
            return decode_responses(document).conversation
        case "output_config.format":
            document = Document({"messages": HELLO, "model": "m", "max_tokens": 9, "output_config": {"format": form}})
            return decode_messages(document, RequestHead("")).conversation
        case "format":
            return decode_ollama(Document({"messages": HELLO, "model": "m", "format": schema})).conversation
        case "generationConfig":
            config: Json = {"responseMimeType": "application/json", "responseJsonSchema": schema}
            contents: Json = [{"role": "user", "parts": [{"text": "hi"}]}]
            document = Document({"contents": contents, "generationConfig": config})
            return decode_gemini(document, RequestHead("/v1beta/models/m:generateContent")).conversation
        case _:
            shape: Json = {"type": "json_schema", "json_schema": {**said, "schema": schema}}
            return decode_chat(Document({"messages": HELLO, "model": "m", "response_format": shape}))


def load(adapter: str) -> Adapter:
    return load_adapter(adapter, BackendSettings(adapter, "http://host"), 1 << 20)


def sent(adapter: str, conversation: Conversation) -> tuple[Any, list[str]]:
    """The body, and what was told of the fields."""
    exchange = Exchange(load(adapter), conversation, Policy())
    told = [notice.detail for notice in exchange.notices if notice.rule == "FIELD_NOT_SENT"]
    return json.loads(exchange.request.body), told


def schema_sent(adapter: str, conversation: Conversation) -> tuple[Any, list[str]]:
    found, told = sent(adapter, conversation)
    for name in PLACES[adapter]:
        found = found[name]
    return found, told


@pytest.mark.parametrize(
    ("schema", "said", "expected", "untold"),
    [
        ({}, {"name": "n"}, {"title": "n"}, {}),
        ({}, NAMED, {"title": "n", "description": "d"}, {}),
        ({"title": "n", "description": "d"}, NAMED, {"title": "n", "description": "d"}, {}),
        (
            {"title": "t", "description": "e"},
            NAMED,
            {"title": "t", "description": "e"},
            {"name": "has its own title", "description": "has its own description"},
        ),
        ({"$ref": "#/$defs/a"}, NAMED, {"$ref": "#/$defs/a"}, dict.fromkeys(NAMED, "is a reference")),
    ],
)
@pytest.mark.parametrize("client", ["response_format", "text.format"])
@pytest.mark.parametrize("adapter", PLACES)
def test_the_name_and_the_description_of_a_schema_stand_in_it_or_are_told(
    adapter: str,
    client: str,
    schema: dict[str, Json],
    said: dict[str, Json],
    expected: dict[str, Json],
    untold: dict[str, str],
) -> None:
    """Gemini API, structured output, and Anthropic's SDKs, `transform_schema`: the model reads `title` and
    `description`; beside `$ref` no member may stand."""
    told = [f"the backend has no field for {name!r} of {client}, whose schema {why}" for name, why in untold.items()]
    assert schema_sent(adapter, asked(client, said, schema)) == (expected, told)


CLIENTS: Final = ("output_config.format", "format", "generationConfig")


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "object", "title": "t"}])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("adapter", PLACES)
def test_a_schema_without_a_name_stays_as_it_is(adapter: str, client: str, schema: dict[str, Json]) -> None:
    assert schema_sent(adapter, asked(client, {}, schema)) == (schema, [])


@pytest.mark.parametrize("client", CLIENTS)
def test_openai_gets_a_name_for_a_schema_without_one(client: str) -> None:
    """OpenAI, API reference, `response_format` and `text.format`: `name` is required."""
    conversation = asked(client, {}, {"type": "object"})
    for adapter, form in (
        ("openai_chat", sent("openai_chat", conversation)[0]["response_format"]["json_schema"]),
        ("openai_responses", sent("openai_responses", conversation)[0]["text"]["format"]),
    ):
        assert (adapter, form["name"], form["schema"]) == (adapter, "answer", {"type": "object"})
