"""Answers questions about the requests of this worker."""

from collections.abc import AsyncGenerator, Callable, Sequence

from gateway.server.inspect.filter import Filter, read_filter
from gateway.server.inspect.requests import Change, Listed, RequestContents
from gateway.server.inspect.ring import RequestRing
from gateway.server.inspect.search import holds
from gateway.server.inspect.serial_thread import SerialThread
from gateway.server.inspect.summary import Summary


class OwnRequests:
    """The latest requests of this worker, a `RequestSource`. `secrets` returns those that nobody may find, and
    `check_reveal` raises InvalidRequest where nobody may search for words."""

    def __init__(
        self,
        ring: RequestRing,
        thread: SerialThread,
        secrets: Callable[[], Sequence[str]],
        check_reveal: Callable[[], None],
    ) -> None:
        self._ring = ring
        self._thread = thread
        self._secrets = secrets
        self._check_reveal = check_reveal

    async def listed(self, filter: str, before: int | None, limit: int) -> Listed:
        wanted, ring = read_filter(filter), self._ring
        if wanted.words:
            self._check_reveal()
            found = frozenset(await self._with_words(wanted))
            return Listed(ring.listed(lambda one: one.seq in found, before, limit), len(found), ring.total)
        matching = await ring.count(wanted.matches) if filter else ring.total
        return Listed(ring.listed(wanted.matches, before, limit), matching, ring.total)

    async def _with_words(self, wanted: Filter) -> Sequence[int]:
        """Returns the `seq` of the requests whose contents hold the words."""
        found: list[int] = []
        known = self._secrets()
        for seq, capture in self._ring.captured(wanted.matches):
            if await self._thread.run(holds, capture.texts(), wanted.words, [*known, *capture.keys]):
                found.append(seq)
        return found

    async def summary(self, request_id: str) -> Summary | None:
        return self._ring.summary(request_id)

    async def contents(self, request_id: str) -> RequestContents | None:
        return self._ring.contents(request_id)

    async def previous(self, conversation: str, before: int) -> Summary | None:
        return self._ring.previous(conversation, before)

    async def clear(self) -> None:
        self._ring.clear()

    def watch(self, after: int | None = None) -> AsyncGenerator[Sequence[Change], None]:
        return self._ring.watchers.watch(after)
