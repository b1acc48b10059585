"""Measures the processor time of a response with each fast path and without it: `python -m bench.fast_paths`.

Both take turns in one process and the best round counts, because other load on the machine affects both alike.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from adapters.anthropic_messages.backend import delta_fast_path as messages_delta_fast_path
from adapters.gemini.backend import decoder as gemini_decoder
from adapters.openai_chat.backend import decoder
from adapters.openai_chat.backend.decoder import ChatDecoder
from adapters.openai_chat.backend.delta_fast_path import DeltaFastPath
from adapters.openai_chat.client import dialect as chat_client
from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_responses.backend import delta_fast_path as responses_delta_fast_path
from adapters.proto.backend import delta_fast_path as proto_delta_fast_path
from adapters.text.backend.event_fast_path import EventFastPath
from adapters.warp.backend.decode import delta_fast_path as warp_delta_fast_path
from bench import payload
from bench.chunk import microseconds
from bench.websocket import WebSocketTarget
from gateway.dialect import AnswerHead, RequestHead
from gateway.dialects.document import read_document
from gateway.framing.sse_fast_path import SSEFastPath
from gateway.server.http.websocket_messages import MessageReader
from gateway.server.http.websocket_text_fast_path import TextFastPath

_ROUNDS: Final = 30
_ANSWERS: Final = 200

# What a part is replaced by when the fast path is left out: it reads nothing and learns nothing.
Plain: TypeAlias = tuple[Any, str, Callable[..., object]]


def _nothing(*_: object) -> None:
    pass


PLAIN: Final[Mapping[str, tuple[Plain, ...]]] = {
    "adapters/anthropic_messages/backend/delta_fast_path.py": (
        (messages_delta_fast_path.DeltaFastPath, "read", lambda _, chunks, __: next(chunks, None)),
    ),
    "adapters/gemini/backend/chunk_fast_path.py": (
        (gemini_decoder, "read_plain", _nothing),
        (gemini_decoder, "read_own", _nothing),
    ),
    "adapters/openai_chat/backend/delta_fast_path.py": (
        (DeltaFastPath, "read", lambda _, chunks, __: next(chunks, None)),
        (DeltaFastPath, "learn", _nothing),
    ),
    "adapters/openai_chat/backend/completion_fast_path.py": ((decoder, "read_plain", _nothing),),
    "adapters/openai_chat/client/completion_fast_path.py": ((chat_client, "encode_plain", _nothing),),
    "adapters/openai_responses/backend/delta_fast_path.py": (
        (responses_delta_fast_path.DeltaFastPath, "read", lambda _, chunks, __: next(chunks, None)),
    ),
    "adapters/proto/backend/delta_fast_path.py": (
        (proto_delta_fast_path.DeltaFastPath, "write", lambda _, frames, __: (0, next(frames, None))),
        (proto_delta_fast_path.DeltaFastPath, "learn", _nothing),
    ),
    "adapters/text/backend/event_fast_path.py": ((EventFastPath, "read", lambda _, chunks: ([], next(chunks, None))),),
    "adapters/warp/backend/decode/delta_fast_path.py": (
        (warp_delta_fast_path.DeltaFastPath, "read", _nothing),
        (warp_delta_fast_path.DeltaFastPath, "learn", _nothing),
    ),
    "gateway/framing/sse_fast_path.py": ((SSEFastPath, "split", _nothing), (SSEFastPath, "learn", _nothing)),
    "gateway/server/http/websocket_text_fast_path.py": ((TextFastPath, "read", _nothing),),
}


def answer_us() -> float:
    """Measures the processor time for decoding a whole response."""
    body = payload.completion()
    begun = time.process_time()
    for _ in range(_ANSWERS):
        reading = ChatDecoder(1 << 20, 1)
        reading.feed(body)
        reading.close()
    return 1e6 * (time.process_time() - begun) / _ANSWERS


def encoded_us() -> float:
    """Measures the processor time for encoding a whole response."""
    dialect, reading = OpenAIChatDialect(), ChatDecoder(1 << 20, 1)
    events = [*reading.feed(payload.completion()), *reading.close()]
    request = dialect.decode(read_document(payload.request("m", stream=False)), RequestHead("/", b"", {}))
    head = AnswerHead("u", 1, "m", lambda: 1)
    begun = time.process_time()
    for _ in range(_ANSWERS):
        dialect.encode_answer(request, head, events)
    return 1e6 * (time.process_time() - begun) / _ANSWERS


def message_us() -> float:
    """Measures the processor time for reading the small request of a WebSocket's client."""
    frame = WebSocketTarget("").encode(payload.responses_request("m", stream=True))
    reader = MessageReader(1 << 20)
    begun = time.process_time()
    for _ in range(_ANSWERS):
        [_] = reader.feed(frame)
    return 1e6 * (time.process_time() - begun) / _ANSWERS


def _chunks(path: str, more: str = "") -> Mapping[str, Callable[[], float]]:
    return {
        f"a chunk{more}, alone in its read": partial(microseconds, path, 1),
        f"a chunk{more}, 64 in a read": partial(microseconds, path, 64),
    }


MEASURES: Final[Mapping[str, Mapping[str, Callable[[], float]]]] = {
    "adapters/anthropic_messages/backend/delta_fast_path.py": _chunks("messages"),
    "adapters/gemini/backend/chunk_fast_path.py": {
        **_chunks("gemini"),
        **_chunks("gemini, Gemini client", " for a Gemini client"),
    },
    "adapters/openai_chat/backend/delta_fast_path.py": _chunks("native"),
    "adapters/openai_chat/backend/completion_fast_path.py": {"a whole answer": answer_us},
    "adapters/openai_chat/client/completion_fast_path.py": {"a whole answer, encoded": encoded_us},
    "adapters/openai_responses/backend/delta_fast_path.py": _chunks("responses"),
    "adapters/proto/backend/delta_fast_path.py": {
        **_chunks("protobuf by a mapping"),
        **_chunks("gRPC, counts in every message", " over gRPC with its counts"),
    },
    "adapters/text/backend/event_fast_path.py": _chunks("text"),
    "adapters/warp/backend/decode/delta_fast_path.py": _chunks("protobuf"),
    "gateway/framing/sse_fast_path.py": _chunks("native"),
    "gateway/server/http/websocket_text_fast_path.py": {"a request over a WebSocket": message_us},
}


def without(path: str, measure: Callable[[], float]) -> float:
    """Measures once without this fast path."""
    patches = [patch.object(owner, name, plain) for owner, name, plain in PLAIN[path]]
    for patched in patches:
        patched.start()
    try:
        return measure()
    finally:
        for patched in patches:
            patched.stop()


def main() -> None:
    """Measures and printss a table."""
    print("| fast path | of | with, us | without, us | times as fast |\n|---|---|---|---|---|")
    for path, measures in MEASURES.items():
        for name, measure in measures.items():
            rounds = [(measure(), without(path, measure)) for _ in range(_ROUNDS)]
            fast, plain = (min(times) for times in zip(*rounds, strict=True))
            print(f"| `{path}` | {name} | {fast:.1f} | {plain:.1f} | {plain / fast:.1f} |")


if __name__ == "__main__":
    main()
