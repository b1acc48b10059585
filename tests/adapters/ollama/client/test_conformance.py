"""The dialect kit over Ollama's API, with a small strict client."""

import json
from typing import Any, Final

import pytest

from adapters.ollama.client.dialect import OllamaDialect
from gateway.core.conversation import Conversation, Image, Reasoning, ToolCall, Turn
from gateway.testing.dialect_checks import CHECKS, ClientAnswer, DialectCase, DialectCheck


def write(conversation: Conversation) -> bytes:
    body: dict[str, Any] = {
        "model": conversation.model,
        "messages": [message for turn in conversation.turns for message in messages(turn)],
        "stream": conversation.stream,
    }
    if conversation.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in conversation.tools
        ]
    sampling = conversation.sampling
    given: Any = conversation.params
    options = {
        "num_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop": [*sampling.stop] or None,
        "seed": sampling.seed,
        **{name: given.get(name) for name in ("top_k", "presence_penalty", "frequency_penalty")},
    }
    body["options"] = {name: value for name, value in options.items() if value is not None}
    if "reasoning_effort" in given:
        body["think"] = given["reasoning_effort"]
    if "response_format" in given:
        body["format"] = given["response_format"]["json_schema"]["schema"]
    return json.dumps(body).encode()


def messages(turn: Turn) -> list[dict[str, Any]]:
    if turn.results:
        return [{"role": "tool", "tool_call_id": result.call_id, "content": result.text} for result in turn.results]
    calls = [
        {"id": call.id, "function": {"name": call.name, "arguments": json.loads(call.arguments)}} for call in turn.calls
    ]
    images = [block.url.partition(",")[2] for block in turn.blocks if type(block) is Image]
    thinking = "".join([block.text for block in turn.blocks if isinstance(block, Reasoning)])
    more = {"thinking": thinking, "tool_calls": calls, "images": images}
    return [{"role": turn.role, "content": turn.text, **{name: value for name, value in more.items() if value}}]


def read_stream(data: bytes) -> ClientAnswer:
    """Reads the lines that are complete. Nothing may follow the last one, which is done or an error."""
    text, thinking = "", ""
    calls: list[ToolCall] = []
    forms: set[str] = set()
    last: dict[str, Any] = {}
    for line in data.split(b"\n")[:-1]:
        # Split as the official client does.
        assert len(line.decode().splitlines()) == 1, "a line that is two lines to clients, or blank"
        assert not last, "a line after the last one"
        answer = json.loads(line)
        if "error" in answer:
            return ClientAnswer(text, thinking, tuple(calls), None, None, (), str(answer["error"]))
        piece = piece_of(answer)
        forms.add("message" if "message" in answer else "response")
        text += piece.text
        thinking += piece.reasoning
        calls += piece.calls
        if answer["done"]:
            last = answer
        else:
            assert "done_reason" not in answer and "eval_count" not in answer
    assert len(forms) < 2, "the answer to a chat and the answer to a prompt in one stream"
    return ClientAnswer(text, thinking, tuple(calls), last.get("done_reason"), tokens(last), rules(last))


def read_whole(body: bytes) -> ClientAnswer:
    answer = json.loads(body)
    assert answer["done"] is True
    piece = piece_of(answer)
    return ClientAnswer(piece.text, piece.reasoning, piece.calls, answer["done_reason"], tokens(answer), rules(answer))


def piece_of(answer: dict[str, Any]) -> ClientAnswer:
    """The content of one line: of a chat in `message`, of the answer to a prompt beside `response`."""
    assert answer["model"] and answer["created_at"].endswith("Z") and isinstance(answer["done"], bool)
    assert ("message" in answer) != ("response" in answer)
    content = answer.get("message", answer)
    assert answer.get("message", {"role": "assistant"})["role"] == "assistant"
    text = content["content"] if "message" in answer else content["response"]
    assert isinstance(text, str) and content.get("thinking") != ""
    return ClientAnswer(text, content.get("thinking", ""), tuple(map(call_of, content.get("tool_calls", ()))))


def call_of(call: dict[str, Any]) -> ToolCall:
    function = call["function"]
    assert isinstance(function["arguments"], dict) and isinstance(function["index"], int)
    return ToolCall(call["id"], function["name"], json.dumps(function["arguments"]))


def tokens(answer: dict[str, Any]) -> tuple[int, int] | None:
    """The counts, of which Ollama leaves out those that are 0."""
    counts = {"prompt_eval_count", "eval_count"} & answer.keys()
    assert all(answer[name] > 0 for name in counts)
    return (answer.get("prompt_eval_count", 0), answer.get("eval_count", 0)) if counts else None


def rules(answer: dict[str, Any]) -> tuple[str, ...]:
    return tuple(notice["rule"] for notice in answer.get("dragoman", {}).get("diagnostics", ()))


def names_of(body: bytes) -> list[str]:
    """The names of models, each of which has a tag; `latest` is that of a model that has none of its own."""
    models = json.loads(body)["models"]
    assert all(":" in model["model"] and model["name"] == model["model"] for model in models)
    return [model["model"].removesuffix(":latest") for model in models]


CASE: Final = DialectCase(
    OllamaDialect,
    write,
    read_stream,
    read_whole,
    read_error=lambda body: str(json.loads(body)["error"]),
    read_models=names_of,
    finishes={"stop": "stop", "length": "length", "tool_calls": "stop", "content_filter": "stop"},
    streams_by_default=True,
    lacks=frozenset(
        {"tool_choice", "tool_choice none", "tool_choice named", "parallel_tool_calls", "strict", "is_error"}
        | {"user", "service_tier"}
    ),
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_ollama_conforms(check: DialectCheck) -> None:
    check(CASE)
