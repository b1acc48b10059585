"""Asks the counters of servers of OpenAI's chat completions how many tokens a request has."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.adapter import BackendRequest
from gateway.wires.token_count import counted_fields, counting, reported_count

_COUNTED: Final = frozenset({"model", "messages", "tools", "chat_template_kwargs"})
CounterName: TypeAlias = Literal["llama_cpp", "vllm", "kimi"]


class Counter(msgspec.Struct, frozen=True):
    """Where a server counts the tokens of a request: a path below base_url, in which `{path}` is that of the requests
    themselves, and the names that lead to the number in its answer."""

    path: str
    count: tuple[str, ...]

    def request(self, counted: BackendRequest) -> BackendRequest:
        """Returns the request that asks for the tokens of this one, with the fields that all counters take."""
        path = self.path.format(path=counted.path)
        return counting(counted, path, counted_fields(counted.body, _COUNTED))

    def decode(self, body: bytes) -> int:
        """Returns the number in the answer. Raises BackendProtocolError."""
        return reported_count(body, *self.count)


# The API itself has no counter. (llama.cpp, tools/server, README; vLLM, TokenizeChatRequest, at the root of the server;
# Moonshot AI, "Estimate tokens".)
COUNTERS: Final[Mapping[CounterName, Counter]] = {
    "llama_cpp": Counter("{path}/input_tokens", ("input_tokens",)),
    "vllm": Counter("/../tokenize", ("count",)),
    "kimi": Counter("/tokenizers/estimate-token-count", ("data", "total_tokens")),
}
