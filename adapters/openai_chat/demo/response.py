"""Encodes a response as the Chat Completions wire: server-sent chunks or one object."""

from collections.abc import Iterator
from typing import Final

import msgspec

from adapters.openai.demo import CREATED
from adapters.openai_chat.demo.answer import Answer, arguments_of
from gateway.core.conversation import Json
from gateway.demo.scripted_model.words import pieces

DONE: Final = b"data: [DONE]\n\n"


def frame(chunk: Json) -> bytes:
    """Encodes one server-sent event."""
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def chunk(answer: Answer, delta: dict[str, Json], finish: str | None = None) -> dict[str, Json]:
    """Builds a chunk with one choice."""
    choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_head(answer, "chat.completion.chunk"), "choices": [choice]}


def deltas(answer: Answer) -> Iterator[dict[str, Json]]:
    """Yields the response piece by piece, without the finish: role, reasoning, text, then each call in pieces of
    arguments."""
    yield chunk(answer, {"role": "assistant", "content": None if answer.calls and not answer.text else ""})
    yield from (chunk(answer, {"reasoning_content": piece}) for piece in answer.reasoning)
    yield from (chunk(answer, {"content": piece}) for piece in answer.text)
    for index, call in enumerate(answer.calls):
        head: Json = {"name": call.name, "arguments": ""}
        yield chunk(answer, {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": head}]})
        for piece in pieces(arguments_of(call)):
            yield chunk(answer, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def finish_chunk(answer: Answer) -> dict[str, Json]:
    return chunk(answer, {}, answer.finish)


def usage_chunk(answer: Answer) -> dict[str, Json]:
    """Builds the last chunk, which has the usage and no choice."""
    return {**_head(answer, "chat.completion.chunk"), "choices": [], "usage": answer.usage}


def completion(answer: Answer) -> dict[str, Json]:
    """Builds the same response as one object."""
    message: dict[str, Json] = {"role": "assistant", "content": "".join(answer.text) or None, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = "".join(answer.reasoning)
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_of(call)}}
            for call in answer.calls
        ]
    elif message["content"] is None:
        message["content"] = ""
    choice: Json = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
    return {**_head(answer, "chat.completion"), "choices": [choice], "usage": answer.usage}


def _head(answer: Answer, kind: str) -> dict[str, Json]:
    return {"id": answer.id, "object": kind, "created": CREATED, "model": answer.model, "system_fingerprint": "fp_demo"}
