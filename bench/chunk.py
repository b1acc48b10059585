"""Measures the processor time for each chunk, by path, without sockets: `python -m bench.chunk`.

The paths take turns and the best round counts, because other load on the machine affects all of them alike.
"""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapters.anthropic_messages import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.gemini import GeminiAdapter, GeminiOptions
from adapters.openai_chat import OpenAIChatAdapter
from adapters.openai_chat.adapter import OpenAIChatOptions
from adapters.openai_responses import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.text import TextAdapter
from adapters.text.options import TextOptions
from adapters.warp import WarpAdapter
from adapters.warp.options import WarpOptions
from bench import payload
from gateway.adapter import Adapter
from gateway.core.policy import Policy
from gateway.dialects.openai_chat.decode import decode
from gateway.dialects.openai_chat.stream import ChatStreamEncoder
from gateway.exchange import Exchange

CHUNKS: Final = 512
PER_READ: Final = (1, 64)
_ROUNDS: Final = 60
_LIMIT: Final = 1 << 20
_TEXT: Final = TextAdapter(TextOptions(wire="llama_cpp"), _LIMIT)

# A backend, its response, and the tools that the client offers.
PATHS: Final[Mapping[str, tuple[Adapter, Callable[[int], Sequence[bytes]], tuple[str, ...]]]] = {
    "native": (OpenAIChatAdapter(OpenAIChatOptions(), _LIMIT), payload.chunks, ()),
    "messages": (AnthropicMessagesAdapter(AnthropicMessagesOptions(), _LIMIT), payload.message_events, ()),
    "responses": (OpenAIResponsesAdapter(OpenAIResponsesOptions(), _LIMIT), payload.response_events, ()),
    "gemini": (GeminiAdapter(GeminiOptions(), _LIMIT), payload.gemini_chunks, ()),
    "protobuf": (WarpAdapter(WarpOptions(rollback="stream"), _LIMIT), payload.frames, ()),
    "text": (_TEXT, payload.words, ()),
    "text beside tools": (_TEXT, payload.words, ("write_file",)),
    "arguments in text": (_TEXT, payload.written_call, ("write_file",)),
}


def microseconds(path: str, per_read: int) -> float:
    """Measure the processor time for a chunk of one response, with this many chunks per read."""
    adapter, write, tools = PATHS[path]
    events = write(CHUNKS)
    reads = [b"".join(events[at : at + per_read]) for at in range(0, len(events), per_read)]
    exchange = Exchange(adapter, decode(payload.request("m", stream=True, tools=tools)), Policy())
    encoder = ChatStreamEncoder("id", 1, "m")
    gc.collect()
    begun = time.process_time()
    for read in reads:
        encoder.feed(exchange.feed(read))
    spent = time.process_time() - begun
    if not exchange.finished:
        raise ValueError("the answer was not read to its end")
    return 1e6 * spent / CHUNKS


def main() -> None:
    """Measure and print a table."""
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
