"""Recorded shapes of answers, as bytes."""

import json

from gateway.core.conversation import Json


def sse(*chunks: Json, done: bool = True) -> bytes:
    """Chunks as server-sent events."""
    events = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return b"".join(events) + (b"data: [DONE]\n\n" if done else b"")


def chunk(delta: Json = None, finish: str | None = None, **fields: Json) -> dict[str, Json]:
    """One chunk with one choice."""
    choice: dict[str, Json] = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [choice], **fields}


def entry(index: Json = None, id: Json = None, name: Json = None, arguments: Json = None) -> dict[str, Json]:
    """One piece of a tool call; None leaves a field out."""
    function: Json = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields = [("index", index), ("id", id), ("function", function)]
    return {key: value for key, value in fields if value is not None and value != {}}


def call(index: Json = None, id: Json = None, name: Json = None, arguments: Json = None) -> dict[str, Json]:
    """A delta with one piece of a tool call."""
    return {"tool_calls": [entry(index, id, name, arguments)]}


def usage(prompt: int = 3, completion: int = 4) -> dict[str, Json]:
    """The chunk that ends a stream whose client asked for the counts."""
    counts: Json = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [], "usage": counts}


def completion(message: Json, finish: str | None = "stop", **fields: Json) -> bytes:
    """A whole answer."""
    choice: Json = {"index": 0, "message": message, "finish_reason": finish}
    answer = {"id": "c1", "object": "chat.completion", "created": 7, "model": "m", "choices": [choice], **fields}
    return json.dumps(answer).encode()
