"""Compares the prompt of each answered request with those before it in its conversation, and counts what a provider's
cache could not serve.

Of a request its digests are kept (`gateway.diagnostics.prompt_cache`), and no words: of each conversation those of its
last branches, and of the newest conversations, within a bound. A conversation is known by its client and its first
message (`gateway.memory.history_digest`), and each worker knows the requests that it served.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Final

import msgspec

from gateway.diagnostics.prompt_cache.finding import (
    CacheCounts,
    Finding,
    common_units,
    compare,
    is_comparable,
    shared_messages,
)
from gateway.diagnostics.prompt_cache.prompt import Prompt, prompt_of, tokens_of
from gateway.diagnostics.prompt_cache.words import cause_name, cause_rule
from gateway.exchange import Exchange
from gateway.inspector.summary import TokenCounts, first_user_turn, token_counts
from gateway.memory.history_digest import history_digests
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext, RequestObserver
from gateway.server.upstream.backends import Backend

# A conversation and its branches, such as what its agent asks other models.
_MOST_BRANCHES: Final = 4
# Reading a smaller prompt takes less than a millisecond.
_LARGE: Final = 128 * 1024


class _Known(msgspec.Struct, frozen=True):
    """The prompt of a request, and when it was answered (monotonic clock)."""

    prompt: Prompt
    at: float


class CacheDoctor:
    """The prompts of the newest conversations, in at most so many bytes. `remembers` says whether anything may be kept
    of a request."""

    def __init__(self, most_bytes: int, metrics: Metrics, remembers: Callable[[RequestContext], bool]) -> None:
        self._most_bytes = most_bytes
        self._metrics = metrics
        self._remembers = remembers
        self._secret = secrets.token_bytes(16)
        # By the time of the last request.
        self._conversations: OrderedDict[bytes, tuple[_Known, ...]] = OrderedDict()
        self._bytes = 0

    def wants(self, context: RequestContext) -> bool:
        """Returns whether a request may be examined."""
        return self._remembers(context)

    def examine(self, context: RequestContext, exchange: Exchange, new: Prompt) -> Finding | None:
        """Returns what the provider's cache could not serve of an answered request; None: nothing, or nothing that is
        known. Keeps its prompt for the next one."""
        first = first_user_turn(exchange.received.turns)
        if first is None:
            return None
        (boundary,) = history_digests((first,), self._secret, context.key)
        branches = self._conversations.get(boundary.digest, ())
        before = _before(branches, new)
        now = monotonic()
        self._keep(boundary.digest, branches, before, _Known(new, now))
        if before is None:
            return None
        usage = TokenCounts() if context.usage is None else token_counts(context.usage)
        counts = CacheCounts(None if usage.estimated else usage.prompt, usage.cached)
        found = compare(before.prompt, new, tokens_of(exchange.conversation), counts, now - before.at)
        if found is not None and not found.lost:
            found = None
        self._count(new.backend, found)
        return found

    def _count(self, backend: str, found: Finding | None) -> None:
        self._metrics.prompt_cache_requests.inc(backend)
        if found is not None:
            labels = (backend, cause_name(found.cause), cause_rule(found.cause) or "-")
            self._metrics.prompt_cache_breaks.inc(*labels)
            self._metrics.prompt_cache_lost_tokens.inc(*labels, by=found.lost)

    def _keep(self, key: bytes, branches: tuple[_Known, ...], before: _Known | None, new: _Known) -> None:
        """Keeps a prompt in place of the one that it goes on from."""
        goes_on = before is not None and _goes_on(before.prompt, new.prompt)
        others = tuple(one for one in branches if not (goes_on and one is before))
        kept = (*others[-(_MOST_BRANCHES - 1) :], new)
        self._bytes += _size(kept) - _size(branches)
        self._conversations[key] = kept
        self._conversations.move_to_end(key)
        while self._bytes > self._most_bytes:
            _, oldest = self._conversations.popitem(last=False)
            self._bytes -= _size(oldest)

    def clear(self) -> None:
        """Forgets all prompts."""
        self._conversations.clear()
        self._bytes = 0


class Examination(RequestObserver):
    """Takes what is needed to examine one request, when it has been answered. The prompt of a large one is read in a
    thread while its answer is awaited."""

    def __init__(self, doctor: CacheDoctor) -> None:
        self._doctor = doctor
        self._sent: tuple[Backend, Exchange] | None = None
        self._reading: asyncio.Future[Prompt] | None = None

    def connect(self, context: RequestContext, backend: Backend, exchange: Exchange) -> None:
        if self._doctor.wants(context):
            self._sent = (backend, exchange)
            if len(exchange.request.body) >= _LARGE:
                self._reading = asyncio.get_running_loop().run_in_executor(None, _prompt, backend, exchange)

    def finding(self, context: RequestContext) -> Finding | None:
        """Returns the finding of a request that has ended."""
        if self._sent is None or not context.begun:
            return None
        backend, exchange = self._sent
        reading = self._reading
        prompt = reading.result() if reading is not None and reading.done() else _prompt(backend, exchange)
        return self._doctor.examine(context, exchange, prompt)


def _prompt(backend: Backend, exchange: Exchange) -> Prompt:
    return prompt_of(exchange, backend.adapter.capabilities.passthrough, backend.name)


def _size(known: tuple[_Known, ...]) -> int:
    return sum(one.prompt.size for one in known)


def _before(branches: tuple[_Known, ...], new: Prompt) -> _Known | None:
    """Returns the request that the new one goes on from: of those that can be, one of the same model, then the one with
    which most is in common."""

    def likeness(known: _Known) -> tuple[bool, int, int, float]:
        old = known.prompt
        same = (old.backend, old.model) == (new.backend, new.model)
        return same, common_units(old, new), shared_messages(old, new), known.at

    return max((one for one in branches if is_comparable(one.prompt, new)), key=likeness, default=None)


def _goes_on(old: Prompt, new: Prompt) -> bool:
    same = (old.backend, old.model) == (new.backend, new.model)
    return same and new.client.messages.startswith(old.client.messages)
