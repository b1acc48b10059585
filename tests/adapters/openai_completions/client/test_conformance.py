"""The dialect kit over OpenAI's completions, with a small strict client."""

import json
from typing import Any, Final

import pytest

from adapters.openai_completions.client.dialect import OpenAICompletionsDialect
from gateway.core.conversation import Conversation
from gateway.testing.dialect_checks import PROMPT_CHECKS, ClientAnswer, DialectCase, DialectCheck
from tests.adapters.openai_chat.client.test_conformance import rules, tokens

# A completion has a prompt alone.
OF_CHAT: Final = frozenset(
    {"tools", "tool description", "tool schema", "strict", "tool_choice", "tool_choice none", "tool_choice named"}
    | {"parallel_tool_calls", "is_error", "reasoning", "image", "system", "developer", "later system"}
)
FIELDS: Final = {"id", "object", "created", "model", "choices"}


def write(conversation: Conversation) -> bytes:
    (turn,) = conversation.turns
    body: dict[str, Any] = {"model": conversation.model, "prompt": turn.text, "stream": conversation.stream}
    if conversation.include_usage:
        body["stream_options"] = {"include_usage": True}
    sampling = conversation.sampling
    fields = {
        **conversation.params,
        # Without a limit the API's own would cut the answer.
        "max_tokens": sampling.max_tokens or 4096,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop": [*sampling.stop] or None,
        "seed": sampling.seed,
    }
    return json.dumps({**body, **{name: value for name, value in fields.items() if value is not None}}).encode()


def read_stream(data: bytes) -> ClientAnswer:
    """Reads the events that are complete; the finish counts only behind `[DONE]`, as nothing else ends a stream."""
    text, finish, done = "", None, False
    usage: dict[str, int] | None = None
    notices: tuple[str, ...] = ()
    error: str | None = None
    for event in data.split(b"\n\n")[:-1]:
        assert not done and error is None, "an event after the last one"
        if event.startswith(b":"):
            continue
        assert event.startswith(b"data: ") and len(event.decode().splitlines()) == 1
        if event == b"data: [DONE]":
            done = True
            continue
        chunk = json.loads(event.removeprefix(b"data: "))
        if "error" in chunk:
            error = chunk["error"]["message"]
            continue
        assert chunk.keys() >= FIELDS and chunk["object"] == "text_completion"
        usage = chunk.get("usage") or usage
        notices = rules(chunk) or notices
        for choice in chunk["choices"]:
            assert finish is None, "a choice after the finish"
            text += piece_of(choice)
            finish = choice["finish_reason"]
    return ClientAnswer(text, "", (), finish if done else None, tokens(usage), notices, error)


def read_whole(body: bytes) -> ClientAnswer:
    answer = json.loads(body)
    assert answer.keys() >= FIELDS and answer["object"] == "text_completion"
    (choice,) = answer["choices"]
    return ClientAnswer(piece_of(choice), "", (), choice["finish_reason"], tokens(answer.get("usage")), rules(answer))


def piece_of(choice: dict[str, Any]) -> str:
    assert choice.keys() == {"text", "index", "logprobs", "finish_reason"}
    assert (choice["index"], choice["logprobs"]) == (0, None) and isinstance(choice["text"], str)
    return str(choice["text"])


CASE: Final = DialectCase(
    OpenAICompletionsDialect,
    write,
    read_stream,
    read_whole,
    read_error=lambda body: str(json.loads(body)["error"]["message"]),
    read_models=lambda body: [model["id"] for model in json.loads(body)["data"]],
    finishes={reason: reason for reason in ("stop", "length", "tool_calls", "content_filter")},
    reads=frozenset(),
    lists_models=False,
    lacks=OF_CHAT,
)


@pytest.mark.parametrize("check", PROMPT_CHECKS, ids=lambda check: check.__name__)
def test_completions_conform(check: DialectCheck) -> None:
    check(CASE)
