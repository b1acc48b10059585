"""Writes chunks of the API's wire."""

import json
from typing import Any


def chunk(*parts: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with these parts."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [*parts]}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r", **fields}


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"text": said, **fields}


def call(name: str, arguments: dict[str, Any], identity: str | None = None, **fields: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"name": name, "args": arguments}
    return {"functionCall": said if identity is None else {"id": identity, **said}, **fields}


def usage(prompt: int = 3, answered: int = 4, thoughts: int | None = None) -> dict[str, Any]:
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": answered}
    if thoughts is not None:
        counts["thoughtsTokenCount"] = thoughts
    return {"usageMetadata": {**counts, "totalTokenCount": prompt + answered + (thoughts or 0)}}


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(made, ensure_ascii=False).encode() + b"\r\n\r\n" for made in chunks)
