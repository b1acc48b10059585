"""A request of generateContent reaches a backend of the same API as its client wrote it.

The values are those of the published types of Google's SDK. The exceptions are listed in docs/gemini-backends.md, "A
client of the same API".
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.gemini.client.decode import decode_document
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from tests.same_api.unknown import NEW_FIELDS, with_new_fields

PUBLISHED: Final = json.loads(
    (Path(__file__).parent / "gemini.json").read_text().replace('"jsonPath": "a"', '"jsonPath": "$.a"')
)
ADAPTER: Final = GeminiAdapter(GeminiOptions(), 1 << 20)
PATH: Final = "/v1beta/models/m:generateContent"
HELLO: Final[dict[str, Any]] = {"role": "user", "parts": [{"text": "Hello"}]}
BODY: Final[dict[str, Any]] = {"contents": [HELLO]}
TEXT: Final[dict[str, Any]] = {"text": "a"}
CALL: Final[dict[str, Any]] = {"functionCall": {"name": "f", "args": {}}}
RESULT: Final[dict[str, Any]] = {"functionResponse": {"name": "f", "response": {"output": "7"}}}
# One of the two schemas may stand in a config, and a request gets one candidate.
CONFIG: Final = {
    **{name: [value] for name, value in PUBLISHED["config"].items()},
    "candidateCount": [1],
    "responseMimeType": ["application/json", "text/plain", "text/x.enum"],
    "responseModalities": [["TEXT"], ["TEXT", "IMAGE"], ["X_NEW"]],
    "thinkingConfig": [{"thinkingLevel": "X_NEW"}, {"thinkingBudget": -1}, PUBLISHED["config"]["thinkingConfig"]],
    # The SDK writes the name of a voice as an object.
    "speechConfig": [{"languageCode": "de-DE"}],
    "topK": [40],
}
PARTS: Final = [*PUBLISHED["parts"], {"x_part": {"a": 1}}, {"text": "a", "functionCall": {"name": "f"}}]


def sent(body: dict[str, Any]) -> Any:
    conversation = decode_document(read_document(json.dumps(body).encode()), RequestHead(PATH)).conversation
    return json.loads(Exchange(ADAPTER, conversation, Policy()).request.body)


def contents_with(part: dict[str, Any]) -> list[dict[str, Any]]:
    """A history in which the API accepts the part."""
    if "functionCall" in part:
        result = {"functionResponse": {**RESULT["functionResponse"], "name": part["functionCall"].get("name")}}
        if "id" in part["functionCall"]:
            result["functionResponse"]["id"] = part["functionCall"]["id"]
        return [HELLO, {"role": "model", "parts": [part]}, {"role": "user", "parts": [result]}]
    if "functionResponse" in part:
        call = {name: part["functionResponse"][name] for name in ("id", "name")}
        return [HELLO, {"role": "model", "parts": [{"functionCall": call}]}, {"role": "user", "parts": [part]}]
    if "thought" in part or "thoughtSignature" in part or "toolCall" in part:
        return [HELLO, {"role": "model", "parts": [TEXT, part]}, HELLO]
    return [{"role": "user", "parts": [part]}]


@pytest.mark.parametrize("name", PUBLISHED["request"])
def test_every_field_arrives_with_what_is_new_in_it(name: str) -> None:
    tools = [{"functionDeclarations": [{"name": "a"}]}]
    body = BODY | {"tools": tools, name: with_new_fields(PUBLISHED["request"][name]), **NEW_FIELDS}
    if name == "toolConfig":
        body[name]["functionCallingConfig"] |= {"allowedFunctionNames": ["a"]}
    assert sent(body) == body


@pytest.mark.parametrize("name", PUBLISHED["tools"])
def test_every_tool_arrives_with_what_is_new_in_it(name: str) -> None:
    body = BODY | {"tools": [with_new_fields({name: PUBLISHED["tools"][name]}), {"x_tool": {}}]}
    assert sent(body) == body


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in CONFIG.items() for value in values],
    ids=[name for name, values in CONFIG.items() for _ in values],
)
def test_every_field_of_the_config_arrives_with_what_is_new_in_it(name: str, value: Any) -> None:
    config = {name: with_new_fields(value), **NEW_FIELDS}
    if name.startswith("response") and name.endswith("chema"):
        config["responseMimeType"] = "application/json"
    assert sent(BODY | {"generationConfig": config}) == BODY | {"generationConfig": config}


@pytest.mark.parametrize("mode", ["AUTO", "any", "NONE", "VALIDATED", "X_NEW"])
def test_every_mode_of_calling_arrives(mode: str) -> None:
    tools = {"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}]}
    body = BODY | tools | {"toolConfig": {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": ["b"]}}}
    assert sent(body) == body


@pytest.mark.parametrize("part", PARTS, ids=lambda part: next(iter(part)))
def test_every_part_arrives_with_what_is_new_in_it(part: dict[str, Any]) -> None:
    body = BODY | {"contents": with_new_fields(contents_with(part))}
    assert sent(body) == body


@pytest.mark.parametrize("part", [{"text": "Be brief."}, {"text": ""}, {"x_part": 1}, PARTS[0]])
def test_every_part_of_the_system_instruction_arrives(part: dict[str, Any]) -> None:
    body = BODY | {"systemInstruction": with_new_fields({"role": "system", "parts": [part]})}
    assert sent(body) == body


@pytest.mark.parametrize("instruction", [None, {}, {"parts": []}])
def test_an_empty_system_instruction_arrives(instruction: Any) -> None:
    body = BODY | {"systemInstruction": instruction}
    assert sent(body) == body


def test_neighbouring_contents_arrive_apart() -> None:
    """The chat helpers of the SDKs keep a streamed answer chunk by chunk."""
    chunks = [{"role": "model", "parts": [part], **NEW_FIELDS} for part in (TEXT, TEXT, CALL, TEXT, CALL)]
    results = [{"role": "user", "parts": [RESULT]}, {"role": "function", "parts": [RESULT]}]
    body = BODY | {
        "contents": [HELLO, HELLO, *chunks, *results, HELLO, {"role": "model", "parts": [TEXT, TEXT]}, HELLO]
    }
    assert sent(body) == body


@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_parts_of_a_content_with_results_arrive_in_their_order(at: int) -> None:
    others = [TEXT, {"inlineData": {"mimeType": "image/png", "data": "eA=="}}, {"x_part": 1}]
    parts = [*others[:at], RESULT, *others[at:], RESULT]
    body = BODY | {"contents": [HELLO, {"role": "model", "parts": [CALL, CALL]}, {"role": "user", "parts": parts}]}
    assert sent(body) == body


def test_a_call_in_pieces_arrives_in_its_pieces() -> None:
    """Vertex AI, `FunctionCall.partialArgs`: what streams the arguments of a call is kept by clients chunk by chunk."""
    pieces: list[dict[str, Any]] = [
        {"name": "f", "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x", "willContinue": True}], "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.a", "stringValue": "y"}], "willContinue": True},
        {},
    ]
    chunks = [{"role": "model", "parts": [{"functionCall": piece}]} for piece in pieces]
    body = BODY | {"contents": [HELLO, *chunks, {"role": "user", "parts": [RESULT]}]}
    assert sent(body) == body
