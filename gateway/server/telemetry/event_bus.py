"""Publishes notices and outcomes of requests as a live event stream; names and counts, no contents."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import JsonObject
from gateway.core.notices import Notice
from gateway.server.telemetry.request_context import Outcome, RequestContext, RequestObserver

LIMIT: Final = 1000

Item = tuple[str, JsonObject]


class EventBus(RequestObserver):
    """Sends every published item to all watchers, without the secrets that `redact` removes. A watcher that is too slow
    misses items and gets the number of missed ones.

    Without `watchers` nothing needs to be published: an unused event bus costs nothing.
    """

    def __init__(self, redact: Callable[[str], str] = str, limit: int = LIMIT) -> None:
        self._redact = redact
        self._limit = limit
        self.watchers: set[_Watcher] = set()
        self._first: Item | None = None

    def show_first(self, kind: str, item: JsonObject) -> None:
        """Adds an item that every watcher receives before any other."""
        self._first = (kind, item)

    def notices(self, context: RequestContext, notices: Sequence[Notice]) -> None:
        if self.watchers:
            for notice in notices:
                self.publish("notice", {"request": context.id, **msgspec.to_builtins(notice)})

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        if self.watchers:
            self.publish("request", {"request": context.id, **msgspec.structs.asdict(outcome)})

    def publish(self, kind: str, item: JsonObject) -> None:
        """Sends an item to all watchers now; never waits."""
        for watcher in self.watchers:
            watcher.offer((kind, item))

    def close(self) -> None:
        """Ends the stream of every watcher."""
        for watcher in self.watchers:
            watcher.end()

    async def watch(self) -> AsyncIterator[dict[str, str]]:
        """Yields items from now on, as the fields of server-sent events, until the event bus is closed."""
        watcher = _Watcher(self._limit)
        self.watchers.add(watcher)
        if self._first is not None:
            watcher.offer(self._first)
        try:
            while (item := await watcher.queue.get()) is not None:
                if watcher.missed:
                    yield {"event": "missed", "data": str(watcher.missed)}
                    watcher.missed = 0
                kind, fields = item
                yield {"event": kind, "data": self._redact(msgspec.json.encode(fields).decode())}
        finally:
            self.watchers.discard(watcher)


class _Watcher:
    def __init__(self, limit: int) -> None:
        self.queue: asyncio.Queue[Item | None] = asyncio.Queue()
        self.missed = 0
        self._limit = limit

    def offer(self, item: Item) -> None:
        if self.queue.qsize() < self._limit:
            self.queue.put_nowait(item)
        else:
            self.missed += 1

    def end(self) -> None:
        self.queue.put_nowait(None)
