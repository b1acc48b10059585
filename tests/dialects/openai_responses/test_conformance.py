"""The dialect kit over OpenAI Responses, with a client that checks every rule of the stream."""

import json
from typing import Any, Final

import pytest

from gateway.core.conversation import Conversation, Image, Turn
from gateway.dialects.openai_responses.dialect import OpenAIResponsesDialect
from gateway.testing.dialect_checks import CHECKS, DialectCase, DialectCheck
from tests.dialects.openai_responses.client import read_stream, read_whole


def write(conversation: Conversation) -> bytes:
    body: dict[str, Any] = {
        "model": conversation.model,
        "input": [item for turn in conversation.turns for item in items(turn)],
        "stream": conversation.stream,
    }
    if conversation.sampling.max_tokens is not None:
        body["max_output_tokens"] = conversation.sampling.max_tokens
    if conversation.tools:
        body["tools"] = [
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in conversation.tools
        ]
    return json.dumps(body).encode()


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
    return [*([{"role": turn.role, "content": content}] if content else []), *calls]


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
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_openai_responses_conforms(check: DialectCheck) -> None:
    check(CASE)
