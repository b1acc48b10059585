"""The arguments of a call that are no object reach every client: as they are, or in an object and with a notice."""

import json
from typing import Any, Final

import pytest

from gateway.core.events import Event, Finish, ResponseStart, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.policy import Policy
from gateway.dialects.base import AnswerHead, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_dialect
from tests.scripted import ScriptedAdapter

HEAD: Final = AnswerHead("0123456789abcdef01234567", 1_700_000_000, "m", lambda: 1_700_000_000, diagnostics=True)
WRITTEN: Final = "no object"
SCRIPT: Final[list[Event]] = [
    ResponseStart(),
    ToolCallStart(0, "k", "f"),
    ToolCallDelta(0, WRITTEN),
    ToolCallEnd(0),
    Finish("tool_calls"),
]
PATHS: Final = {"gemini": "/v1beta/models/m:generateContent"}


def whole_answer(name: str) -> Any:  # Any: read as JSON
    dialect = load_dialect(name)
    request = dialect.decode(
        read_document(json.dumps(dialect.example("m")).encode()), RequestHead(PATHS.get(name, dialect.routes[0].path))
    )
    exchange = Exchange(ScriptedAdapter(SCRIPT), request.conversation, Policy())
    return json.loads(dialect.encode_answer(request, HEAD, exchange.feed(b".")))


def call_ollama(body: Any) -> Any:
    return body["message"]["tool_calls"][0]["function"]["arguments"]


def call_messages(body: Any) -> Any:
    return body["content"][0]["input"]


def call_gemini(body: Any) -> Any:
    return body["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]


def call_chat(body: Any) -> Any:
    return body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]


def call_responses(body: Any) -> Any:
    return body["output"][0]["arguments"]


@pytest.mark.parametrize(
    ("name", "arguments_of", "as_object"),
    [
        ("ollama", call_ollama, True),
        ("anthropic_messages", call_messages, True),
        ("gemini", call_gemini, True),
        ("openai_chat", call_chat, False),
        ("openai_responses", call_responses, False),
    ],
)
def test_a_change_of_the_arguments_is_reported(name: str, arguments_of: Any, as_object: bool) -> None:
    body = whole_answer(name)
    assert arguments_of(body) == ({"arguments": WRITTEN} if as_object else WRITTEN)
    told = [notice["rule"] for notice in body.get("dragoman", {}).get("diagnostics", [])]
    assert ("ARGUMENTS_AS_TEXT" in told) is as_object
