"""A chat completions request and its answer arrive as client and backend wrote them.

The values are those of the published types of OpenAI's SDK. The exceptions are
listed in docs/dialects.md, "The same API on both sides".
"""

import json
from collections.abc import Iterable
from typing import Any, Final

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionContentPartParam
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from adapters.openai_chat.backend.adapter import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.dialect import OpenAIChatDialect
from gateway.core.policy import Policy
from gateway.dialect import AnswerHead, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from tests.same_api.samples import hints, samples
from tests.same_api.unknown import NEW_FIELDS, with_new_fields

DIALECT: Final = OpenAIChatDialect()
HEAD: Final = AnswerHead("1", 0, "m", lambda: 0)
HELLO: Final[dict[str, Any]] = {"role": "user", "content": "Hello"}
TOOL: Final = {"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}}
BODY: Final[dict[str, Any]] = {"model": "m", "messages": [HELLO], "tools": [TOOL]}
CALL: Final[dict[str, Any]] = {"id": "a", "type": "function", "function": {"name": "a", "arguments": "{}"}}
FIELDS: Final = [
    (name, value)
    for name, hint in hints(CompletionCreateParamsBase).items()
    if name not in {"messages", "model", "n"}
    for value in samples(hint)
]
PARTS: Final = samples(ChatCompletionContentPartParam)
# What the gateway writes itself, and what it puts in the words of the published API.
OWN: Final = {"id", "object", "created", "model"}


def exchange(body: dict[str, Any]) -> tuple[Any, Exchange]:
    request = DIALECT.decode(read_document(json.dumps(body).encode()), RequestHead("/v1/chat/completions"))
    return request, Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20), request.conversation, Policy())


def sent(body: dict[str, Any]) -> Any:
    return json.loads(exchange(body)[1].request.body)


@pytest.mark.parametrize(("name", "value"), FIELDS, ids=[name for name, _ in FIELDS])
def test_every_field_of_a_request_arrives_with_what_is_new_in_it(name: str, value: Any) -> None:
    # A map of numbers has no fields, and the deprecated name of tool_choice belongs to other tools.
    value = value if name == "logit_bias" else with_new_fields(value)
    body = {field: given for field, given in BODY.items() if (field, name) != ("tools", "function_call")}
    body |= {name: value, **NEW_FIELDS}
    assert sent(body) == body


@pytest.mark.parametrize("part", [*PARTS, {"type": "x_part"}], ids=lambda part: part["type"])
def test_every_part_of_a_message_arrives_with_what_is_new_in_it(part: dict[str, Any]) -> None:
    body = BODY | {"messages": [with_new_fields({"role": "user", "content": [part]})]}
    assert sent(body) == body


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "reasoning_details", "refusal", "audio", "phase"])
def test_every_field_of_an_assistant_message_arrives(field: str) -> None:
    value: Any = [{"type": "reasoning.text", "text": "hm"}] if field == "reasoning_details" else "hm"
    value = {"id": "a"} if field == "audio" else value
    said = with_new_fields({"role": "assistant", "content": "Hm.", "tool_calls": [CALL], field: value})
    result = with_new_fields({"role": "tool", "tool_call_id": "a", "content": "7", "name": "a"})
    body = BODY | {"messages": [HELLO, said, result]}
    assert sent(body) == body


def answered(body: bytes, *, stream: bool) -> bytes:
    request, opened = exchange(BODY | ({"stream": True, "stream_options": {"include_usage": True}} if stream else {}))
    opened.on_response_head(200, {"content-type": "text/event-stream" if stream else "application/json"})
    if not stream:
        return DIALECT.encode_answer(request, HEAD, [*opened.feed(body), *opened.close()])
    encoder = DIALECT.stream_encoder(request, HEAD)
    # Each event arrives alone.
    data = b"".join([encoder.feed(opened.feed(event + b"\n\n")) for event in body.split(b"\n\n")])
    return data + encoder.feed(opened.close()) + encoder.close()


def whole(completion: dict[str, Any]) -> Any:
    return plain(json.loads(answered(json.dumps(completion).encode(), stream=False)))


def streamed(chunks: Iterable[dict[str, Any]]) -> list[Any]:
    written = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    frames = answered(written, stream=True).decode().split("\n\n")
    return [plain(json.loads(frame[6:])) for frame in frames if frame and not frame.endswith("[DONE]")]


def plain(value: Any, *, top: bool = True) -> Any:
    """A value without null fields, which mean the same as absent ones, and without what the gateway writes itself."""
    if isinstance(value, list):
        return [plain(item, top=False) for item in value]
    if isinstance(value, dict):
        kept = {name: plain(inner, top=False) for name, inner in value.items() if inner is not None}
        return {name: inner for name, inner in kept.items() if not (top and name in OWN)}
    return value


COMPLETION: Final = samples(ChatCompletion)[0]
USAGE: Final = with_new_fields(COMPLETION["usage"])


def completion(message: dict[str, Any], reason: str = "stop") -> dict[str, Any]:
    choice = COMPLETION["choices"][0] | {"message": message, "index": 0, "finish_reason": reason}
    return with_new_fields(COMPLETION | {"choices": [choice]})  # type: ignore[no-any-return]  # JSON


MESSAGES: Final[dict[str, dict[str, Any]]] = {
    "text": {"role": "assistant", "content": "ab"},
    "refusal": {"role": "assistant", "content": None, "refusal": "no"},
    "reasoning": {"role": "assistant", "content": "ab", "reasoning": "hm"},
    "reasoning_content": {"role": "assistant", "content": "ab", "reasoning_content": "hm"},
    "both": {"role": "assistant", "content": "ab", "reasoning": "hm", "reasoning_content": "hm"},
    "details": {"role": "assistant", "content": "ab", "reasoning": "hm", "reasoning_details": [{"text": "hm"}]},
    "audio": {"role": "assistant", "content": None, "audio": {"id": "a", "data": "b", "transcript": "c"}},
    "annotations": {"role": "assistant", "content": "ab", "annotations": [{"type": "url_citation"}]},
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_whole_answer_arrives_with_what_is_new_in_it(name: str) -> None:
    answer = completion(MESSAGES[name])
    assert whole(answer) == plain(answer)


def test_a_whole_call_arrives_with_what_is_new_in_it() -> None:
    answer = completion({"role": "assistant", "content": None, "tool_calls": [CALL, CALL | {"id": "b"}]}, "tool_calls")
    assert whole(answer) == plain(answer)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_chunk_of_a_stream_arrives_with_what_is_new_in_it(name: str) -> None:
    message = dict(MESSAGES[name])
    pieces = [{field: value} for field, value in message.items() if field != "role" and value is not None]
    role = ROLE if "content" in pieces[0] or "reasoning" in name else SILENT_ROLE
    chunks = [{"choices": [role]}, *[chunk(with_new_fields(piece)) for piece in pieces]]
    chunks += [chunk({}, "stop"), last()]
    assert streamed(chunks) == [plain(one) for one in chunks]


def test_every_chunk_of_a_call_arrives_with_what_is_new_in_it() -> None:
    begin = {"index": 0, **CALL, "function": {"name": "a", "arguments": ""}}
    more = {"index": 0, "function": {"arguments": "{}"}}
    chunks = [
        {"choices": [SILENT_ROLE]},
        chunk({"tool_calls": [with_new_fields(begin)]}),
        chunk({"tool_calls": [more]}),
        chunk({}, "tool_calls"),
        last(),
    ]
    assert streamed(chunks) == [plain(one) for one in chunks]


# The gateway writes the first chunk itself.
ROLE: Final[dict[str, Any]] = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}

SILENT_ROLE: Final = ROLE | {"delta": {"role": "assistant", "content": None}}


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    sample = samples(ChatCompletionChunk)[0]
    choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": sample["choices"][0]["logprobs"]}
    fields = {name: value for name, value in sample.items() if name not in {"choices", "usage", *OWN}}
    return with_new_fields(fields) | {"choices": [choice | NEW_FIELDS], **NEW_FIELDS}  # type: ignore[no-any-return]


def last() -> dict[str, Any]:
    return {"choices": [], "usage": USAGE}
