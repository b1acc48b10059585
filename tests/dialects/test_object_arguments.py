"""The arguments of a call that are no object reach every client: as they are, or in an object and with a notice."""

import json
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.core.events import Event, Finish, ResponseStart, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.policy import Policy
from gateway.dialect import AnswerHead, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_dialect
from tests.scripted import ScriptedAdapter

HEAD: Final = AnswerHead("0123456789abcdef01234567", 1_700_000_000, "m", lambda: 1_700_000_000, diagnostics=True)
WRITTEN: Final = "[1, 2]"
PATHS: Final = {"gemini": "/v1beta/models/m:generateContent"}


def whole_answer(name: str, function: str = "f", **fields: Json) -> Any:  # Any: read as JSON
    dialect = load_dialect(name)
    body = json.dumps({**dialect.example("m"), **fields}).encode()
    request = dialect.decode(read_document(body), RequestHead(PATHS.get(name, dialect.routes[0].path)))
    script: list[Event] = [
        ResponseStart(),
        ToolCallStart(0, "k", function),
        ToolCallDelta(0, WRITTEN),
        ToolCallEnd(0),
        Finish("tool_calls"),
    ]
    exchange = Exchange(ScriptedAdapter(script), request.conversation, Policy())
    return json.loads(dialect.encode_answer(request, HEAD, exchange.feed(b".")))


def call_ollama(body: Any) -> Any:
    return body["message"]["tool_calls"][0]["function"]["arguments"]


def call_messages(body: Any) -> Any:
    return body["content"][0]["input"]


def call_gemini(body: Any) -> Any:
    return body["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]


def call_interactions(body: Any) -> Any:
    return body["steps"][0]["arguments"]


def call_chat(body: Any) -> Any:
    return body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]


def call_responses(body: Any) -> Any:
    return body["output"][0]["arguments"]


def is_told(body: Any) -> bool:
    return "ARGUMENTS_AS_TEXT" in [notice["rule"] for notice in body.get("dragoman", {}).get("diagnostics", [])]


@pytest.mark.parametrize(
    ("name", "arguments_of", "as_object"),
    [
        ("ollama", call_ollama, True),
        ("anthropic_messages", call_messages, True),
        ("gemini", call_gemini, True),
        ("gemini_interactions", call_interactions, True),
        ("openai_chat", call_chat, False),
        ("openai_responses", call_responses, False),
    ],
)
def test_a_change_of_the_arguments_is_reported(name: str, arguments_of: Any, as_object: bool) -> None:
    body = whole_answer(name)
    assert arguments_of(body) == ({"arguments": WRITTEN} if as_object else WRITTEN)
    assert is_told(body) is as_object


@pytest.mark.parametrize(
    ("tool", "field"), [("shell", "action"), ("local_shell", "action"), ("apply_patch", "operation")]
)
def test_a_change_of_an_action_is_reported(tool: str, field: str) -> None:
    body = whole_answer("openai_responses", tool, tools=[{"type": tool}])
    assert body["output"][0][field]["arguments"] == WRITTEN
    assert is_told(body)
