"""The dialect kit over OpenAI Responses, with a client that checks every rule of the stream."""

import json
from typing import Any, Final

import pytest

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.conversation import Conversation, Image, NamedTool, Reasoning, ToolSpec, Turn
from gateway.core.provider_state import provider_state
from gateway.testing.dialect_checks import CHECKS, DialectCase, DialectCheck
from tests.adapters.openai_responses.client.client import read_stream, read_whole


def write(conversation: Conversation) -> bytes:
    body: dict[str, Any] = {
        "model": conversation.model,
        "input": [item for turn in conversation.turns for item in items(turn)],
        "stream": conversation.stream,
    }
    if conversation.tools:
        body["tools"] = [tool_entry(tool) for tool in conversation.tools]
    if not conversation.parallel_tool_calls:
        body["parallel_tool_calls"] = False
    chosen, sampling = conversation.tool_choice, conversation.sampling
    fields = {
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "tool_choice": {"type": "function", "name": chosen.name} if isinstance(chosen, NamedTool) else chosen,
        **params(conversation),
    }
    return json.dumps(
        {**body, **{name: value for name, value in fields.items() if value not in (None, "auto")}}
    ).encode()


def tool_entry(tool: ToolSpec) -> dict[str, Any]:
    entry = {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return entry if tool.strict is None else {**entry, "strict": tool.strict}


def params(conversation: Conversation) -> dict[str, Any]:
    """The fields of the same name and those of another form than in chat completions."""
    given: Any = conversation.params
    same = ("presence_penalty", "frequency_penalty", "service_tier", "user")
    fields = {name: given[name] for name in same if name in given}
    if "reasoning_effort" in given:
        fields["reasoning"] = {"effort": given["reasoning_effort"]}
    if "response_format" in given:
        fields["text"] = {"format": {"type": "json_schema", **given["response_format"]["json_schema"]}}
    return fields


def items(turn: Turn) -> list[dict[str, Any]]:
    if turn.results:
        return [
            {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
            for result in turn.results
        ]
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in turn.calls
    ]
    images = [
        {"type": "input_image", "image_url": block.url, "detail": "auto"}
        for block in turn.blocks
        if isinstance(block, Image)
    ]
    content = [{"type": "input_text", "text": turn.text}, *images] if images else turn.text
    thoughts = [reasoning_item(block) for block in turn.blocks if isinstance(block, Reasoning)]
    return [*thoughts, *([{"role": turn.role, "content": content}] if content else []), *calls]


def reasoning_item(block: Reasoning) -> dict[str, Any]:
    state = provider_state(block.extra, "openai").get("encrypted_content")
    summary = [{"type": "summary_text", "text": block.text}]
    return {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": state}


CASE: Final = DialectCase(
    OpenAIResponsesDialect,
    write,
    read_stream,
    read_whole,
    read_error=lambda body: str(json.loads(body)["error"]["message"]),
    read_models=lambda body: [model["id"] for model in json.loads(body)["data"]],
    finishes={
        "stop": "completed",
        "length": "incomplete: max_output_tokens",
        "tool_calls": "completed",
        "content_filter": "incomplete: content_filter",
    },
    # Codex sends a request again, in vain, for any other status of a final error.
    statuses={402: 429, 403: 400, 413: 400, 422: 400},
    lacks=frozenset({"stop", "seed", "top_k", "is_error"}),
    provider="openai",
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_openai_responses_conforms(check: DialectCheck) -> None:
    check(CASE)
