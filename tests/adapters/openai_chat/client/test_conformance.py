"""The dialect kit over OpenAI chat completions, with a small strict client."""

import json
from typing import Any, Final

import pytest

from adapters.openai_chat.client.dialect import OpenAIChatDialect
from gateway.core.conversation import Conversation, Image, Json, NamedTool, Reasoning, ToolCall, ToolSpec, Turn
from gateway.testing.dialect_checks import CHECKS, ClientAnswer, DialectCase, DialectCheck


def write(conversation: Conversation) -> bytes:
    body: dict[str, Any] = {
        "model": conversation.model,
        "messages": [message for turn in conversation.turns for message in messages(turn)],
        "stream": conversation.stream,
    }
    if conversation.include_usage:
        body["stream_options"] = {"include_usage": True}
    if conversation.tools:
        body["tools"] = [tool_entry(tool) for tool in conversation.tools]
    if conversation.tool_choice != "auto":
        body["tool_choice"] = choice(conversation)
    if not conversation.parallel_tool_calls:
        body["parallel_tool_calls"] = False
    sampling = conversation.sampling
    fields = {
        **conversation.params,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop": [*sampling.stop] or None,
        "seed": sampling.seed,
    }
    return json.dumps({**body, **{name: value for name, value in fields.items() if value is not None}}).encode()


def tool_entry(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function if tool.strict is None else {**function, "strict": tool.strict}}


def choice(conversation: Conversation) -> Json:
    chosen = conversation.tool_choice
    return {"type": "function", "function": {"name": chosen.name}} if isinstance(chosen, NamedTool) else chosen


def messages(turn: Turn) -> list[dict[str, Any]]:
    if turn.results:
        return [{"role": "tool", "tool_call_id": result.call_id, "content": result.text} for result in turn.results]
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}, **call.extra}
        for call in turn.calls
    ]
    images = [{"type": "image_url", "image_url": {"url": block.url}} for block in turn.blocks if type(block) is Image]
    content = [{"type": "text", "text": turn.text}, *images] if images else turn.text or None
    thoughts = [block.text for block in turn.blocks if isinstance(block, Reasoning)]
    more = {"reasoning_content": "".join(thoughts), "tool_calls": calls}
    return [{"role": turn.role, "content": content, **{name: value for name, value in more.items() if value}}]


def read_stream(data: bytes) -> ClientAnswer:
    """Reads the events that are complete; the finish counts only behind `[DONE]`, as nothing else ends a stream."""
    text, reasoning, finish, done = "", "", None, False
    calls: dict[int, dict[str, str]] = {}
    usage: dict[str, int] | None = None
    notices: tuple[str, ...] = ()
    error: str | None = None
    for event in data.split(b"\n\n")[:-1]:
        assert not done and error is None, "an event after the last one"
        if event.startswith(b":"):
            continue
        assert event.startswith(b"data: ")
        # Split as many clients do.
        assert len(event.decode().splitlines()) == 1
        if event == b"data: [DONE]":
            done = True
            continue
        chunk = json.loads(event.removeprefix(b"data: "))
        if "error" in chunk:
            error = chunk["error"]["message"]
            continue
        assert chunk["object"] == "chat.completion.chunk"
        usage = chunk.get("usage") or usage
        notices = rules(chunk) or notices
        for choice in chunk["choices"]:
            assert finish is None, "a choice after the finish"
            delta = choice["delta"]
            text += delta.get("content") or ""
            reasoning += delta.get("reasoning_content") or ""
            for piece in delta.get("tool_calls", ()):
                assert ("id" in piece) == (piece["index"] not in calls)
                call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.get("id", "")
                call["name"] += piece["function"].get("name", "")
                call["arguments"] += piece["function"].get("arguments", "")
            finish = choice["finish_reason"]
    assert list(calls) == list(range(len(calls)))
    made = tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in calls.values())
    return ClientAnswer(text, reasoning, made, finish if done else None, tokens(usage), notices, error)


def read_whole(body: bytes) -> ClientAnswer:
    answer = json.loads(body)
    assert answer["object"] == "chat.completion"
    (choice,) = answer["choices"]
    message = choice["message"]
    calls = [ToolCall(call["id"], **call["function"]) for call in message.get("tool_calls", ())]
    return ClientAnswer(
        message["content"] or "",
        message.get("reasoning_content", ""),
        tuple(calls),
        choice["finish_reason"],
        tokens(answer.get("usage")),
        rules(answer),
    )


def rules(answer: dict[str, Any]) -> tuple[str, ...]:
    return tuple(notice["rule"] for notice in answer.get("dragoman", {}).get("diagnostics", ()))


def tokens(usage: dict[str, int] | None) -> tuple[int, int] | None:
    return None if usage is None else (usage["prompt_tokens"], usage["completion_tokens"])


CASE: Final = DialectCase(
    OpenAIChatDialect,
    write,
    read_stream,
    read_whole,
    read_error=lambda body: str(json.loads(body)["error"]["message"]),
    read_models=lambda body: [model["id"] for model in json.loads(body)["data"]],
    finishes={
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "content_filter": "content_filter",
    },
    lacks=frozenset({"is_error"}),
    provider="google",
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_openai_chat_conforms(check: DialectCheck) -> None:
    check(CASE)
