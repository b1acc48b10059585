"""Answers as each wire writes them, built from pieces of text."""

import json
from collections.abc import Sequence

from gateway.core.conversation import Json

PIECES = ("Grüß", " dich", "", "\u2028", "!")
TEXT = "".join(PIECES)


def sse(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n" for event in events)


def ndjson(*events: object) -> bytes:
    return b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in events)


def llama(pieces: Sequence[str] = PIECES, stop_type: str = "eos") -> bytes:
    counted: dict[str, Json] = {"tokens_predicted": 5, "tokens_evaluated": 3}
    said = [{"index": 0, "content": piece, "tokens": [1], "stop": False, **counted} for piece in pieces]
    last: Json = {"index": 0, "content": "", "stop": True, "stop_type": stop_type, "stopping_word": "", **counted}
    return sse(*said, last)


def completions(pieces: Sequence[str] = PIECES, usage_apart: bool = True) -> bytes:
    usage: dict[str, Json] = {"usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}}
    said = [{"choices": [{"index": 0, "text": piece, "finish_reason": None}]} for piece in pieces]
    last: dict[str, Json] = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}
    ends = [last, {"choices": [], **usage}] if usage_apart else [last | usage]
    return sse(*said, *ends) + b"data: [DONE]\n\n"


def ollama(pieces: Sequence[str] = PIECES) -> bytes:
    said = [{"model": "m", "response": piece, "done": False} for piece in pieces]
    return ndjson(*said, {"response": "", "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 5})


def ollama_chat(pieces: Sequence[str] = PIECES) -> bytes:
    said = [{"message": {"role": "assistant", "content": piece}, "done": False} for piece in pieces]
    end: Json = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    assert isinstance(end, dict)
    return ndjson(*said, {**end, "prompt_eval_count": 3, "eval_count": 5})


def tgi(pieces: Sequence[str] = PIECES) -> bytes:
    said = [{"token": {"id": 1, "text": piece, "special": False}, "generated_text": None} for piece in pieces]
    details: Json = {"finish_reason": "eos_token", "generated_tokens": 5, "input_length": 3}
    end: Json = {"token": {"id": 2, "text": "</s>", "special": True}, "generated_text": "...", "details": details}
    return sse(*said, end)


def koboldcpp(pieces: Sequence[str] = PIECES) -> bytes:
    said = [{"token": piece, "finish_reason": None} for piece in pieces]
    return sse(*said, {"token": "", "finish_reason": "stop"}).replace(b"data:", b"event: message\ndata:")


def plain_sse(pieces: Sequence[str] = PIECES) -> bytes:
    return b"".join(b"data: " + piece.encode() + b"\n\n" for piece in (*pieces, "[DONE]"))


def plain_ndjson(pieces: Sequence[str] = PIECES) -> bytes:
    return ndjson(*({"text": piece} for piece in pieces), {"done": True})
