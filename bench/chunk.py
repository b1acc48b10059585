"""Measures the processor time for each chunk, by path, without sockets: `python -m bench.chunk`.

The paths take turns and the best round counts, because other load on the machine affects all of them alike.
"""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.gemini.client.dialect import GeminiDialect
from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.adapter import OpenAIChatOptions
from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from bench import payload
from gateway.adapter import Adapter
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.dialect import AnswerHead, Dialect, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.settings import check_options

CHUNKS: Final = 512
PER_READ: Final = (1, 64)
_ROUNDS: Final = 60
_LIMIT: Final = 1 << 20
_TEXT: Final = TextAdapter(TextOptions(wire="llama_cpp"), _LIMIT)

_NATIVE: Final = OpenAIChatAdapter(OpenAIChatOptions(), _LIMIT)
_MESSAGES: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), _LIMIT)
_GEMINI: Final = GeminiAdapter(GeminiOptions(), _LIMIT)
_RESPONSES: Final = OpenAIResponsesAdapter(OpenAIResponsesOptions(), _LIMIT)
# The end of a gRPC response stands behind its body.
_GRPC_OK: Final = {"grpc-status": "0"}
_SO_FAR: Final[dict[str, Json]] = {
    "request": {"model": "$model", "turns": [{"role": "ROLE_USER", "parts": [{"text": "$prompt"}]}]},
    "read": [{"text": "text", "mode": "total", "finish": {"when": {"finish": "FINISH_STOP"}, "reason": "stop"}}],
}


def _mapped(preset: str, **options: Json) -> ProtoAdapter:
    return ProtoAdapter(check_options({"preset": preset, **options}, ProtoOptions, "options"), _LIMIT)


_REQUEST: Final = payload.request("m", stream=True)
_WITH_TOOL: Final = payload.request("m", stream=True, tools=("write_file",))


class Path(msgspec.Struct, frozen=True):
    """A backend, its response with the trailers behind it, and the client that reads it: its dialect and its
    request."""

    adapter: Adapter
    write: Callable[[int], Sequence[bytes]]
    request: bytes = _REQUEST
    dialect: Dialect = OpenAIChatDialect()
    trailers: Mapping[str, str] = {}


_MESSAGES_CLIENT: Final = (payload.messages_request("m", stream=True), AnthropicMessagesDialect())
_RESPONSES_CLIENT: Final = (payload.responses_request("m", stream=True), OpenAIResponsesDialect())
PATHS: Final[Mapping[str, Path]] = {
    "native": Path(_NATIVE, payload.chunks),
    "native, Messages client": Path(_NATIVE, payload.chunks, *_MESSAGES_CLIENT),
    "native, Responses client": Path(_NATIVE, payload.chunks, *_RESPONSES_CLIENT),
    "messages": Path(_MESSAGES, payload.message_events),
    "messages, Messages client": Path(_MESSAGES, payload.message_events, *_MESSAGES_CLIENT),
    "responses": Path(_RESPONSES, payload.response_events),
    "responses, Responses client": Path(_RESPONSES, payload.response_events, *_RESPONSES_CLIENT),
    "gemini": Path(_GEMINI, payload.gemini_chunks),
    "gemini, Gemini client": Path(_GEMINI, payload.gemini_chunks, payload.gemini_request(), GeminiDialect()),
    "protobuf": Path(WarpAdapter(WarpOptions(rollback="stream"), _LIMIT), payload.frames),
    "protobuf by a mapping": Path(_mapped("warp"), payload.frames),
    "gRPC": Path(_mapped("demo"), payload.generation, trailers=_GRPC_OK),
    "gRPC, counts in every message": Path(_mapped("demo"), payload.counted_generation, trailers=_GRPC_OK),
    "gRPC, the text so far": Path(_mapped("demo", **_SO_FAR), payload.total_generation, trailers=_GRPC_OK),
    "gRPC-Web": Path(_mapped("demo", carrier="grpc_web"), payload.web_generation),
    "Connect": Path(_mapped("demo", carrier="connect"), payload.connect_generation),
    "frames_varint": Path(_mapped("demo", carrier="frames_varint"), payload.varint_generation),
    "frames_u32": Path(_mapped("demo", carrier="frames_u32"), payload.u32_generation),
    "text": Path(_TEXT, payload.words),
    "text beside tools": Path(_TEXT, payload.words, _WITH_TOOL),
    "arguments in text": Path(_TEXT, payload.written_call, _WITH_TOOL),
}


def microseconds(path: str, per_read: int) -> float:
    """Measures the processor time for a chunk of one response, with this many chunks per read."""
    measured = PATHS[path]
    events = measured.write(CHUNKS)
    reads = [b"".join(events[at : at + per_read]) for at in range(0, len(events), per_read)]
    request = measured.dialect.decode(read_document(measured.request), RequestHead("/", b"", {}))
    exchange = Exchange(measured.adapter, request.conversation, Policy())
    encoder = measured.dialect.stream_encoder(request, AnswerHead("0" * 24, 1, "m", lambda: 1))
    gc.collect()
    begun = time.process_time()
    for read in reads:
        encoder.feed(exchange.feed(read))
    if measured.trailers:
        encoder.feed(exchange.close(measured.trailers))
    spent = time.process_time() - begun
    if not exchange.finished:
        raise ValueError("the answer was not read to its end")
    return 1e6 * spent / CHUNKS


def main() -> None:
    """Measures and printss a table."""
    best = {(path, per_read): float("inf") for path in PATHS for per_read in PER_READ}
    for _ in range(_ROUNDS):
        for path, per_read in best:
            best[path, per_read] = min(best[path, per_read], microseconds(path, per_read))
    print("| us a chunk | alone in its read | times native | 64 in a read | times native |\n|---|---|---|---|---|")
    for path in PATHS:
        cells = [f"{best[path, n]:.1f} | {best[path, n] / best['native', n]:.2f}" for n in PER_READ]
        print(f"| {path} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
