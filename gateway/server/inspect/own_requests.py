"""Answers questions about the requests of this worker."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Final

from gateway.inspector.filter import Word, holds, read_filter
from gateway.inspector.requests import Change, Listed, RequestContents
from gateway.inspector.summary import Summary
from gateway.inspector.totals import Sum, Totals, totals_of
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.known_requests import KnownRequest
from gateway.server.inspect.recent_requests import RecentRequests
from gateway.server.inspect.serial_thread import SerialThread

# So many bytes of contents are searched in one go, of which each request counts for some.
_SEARCHED_AT_ONCE: Final = 2**20
_LEAST_SIZE: Final = 2**12


class OwnRequests:
    """The latest requests of this worker, a `RequestSource`. `secrets` returns those that nobody may find, and
    `check_reveal` raises InvalidRequest where nobody may search for words."""

    def __init__(
        self,
        recent: RecentRequests,
        thread: SerialThread,
        secrets: Callable[[], Sequence[str]],
        check_reveal: Callable[[], None],
    ) -> None:
        self._recent = recent
        self._thread = thread
        self._secrets = secrets
        self._check_reveal = check_reveal

    async def listed(self, filter: str, before: int | None, limit: int) -> Listed:
        wanted, recent = read_filter(filter), self._recent
        if wanted.words:
            self._check_reveal()
        if not filter:
            return Listed(recent.listed(before=before, limit=limit), recent.total, recent.total)
        found = await recent.found(wanted.matches)
        if wanted.words:
            found = await self._with_words(found, wanted.words)
        return Listed(recent.page(found, before, limit), len(found), recent.total, wanted.found)

    async def totals(self, filter: str) -> Totals:
        wanted, recent, counted = read_filter(filter), self._recent, Sum()
        if wanted.words:
            self._check_reveal()
            found = await self._with_words(await recent.found(wanted.matches), wanted.words)
            return totals_of(recent.page(found, None, len(found)))
        async for summary in recent.summaries(wanted.matches):
            counted.add(summary)
        return counted.totals

    async def _with_words(self, known: Sequence[KnownRequest], words: Sequence[Word]) -> list[KnownRequest]:
        """Returns the requests whose contents hold the words."""
        found: list[KnownRequest] = []
        secrets = self._secrets()
        left = iter(known)
        while batch := self._batch(left):
            held = await self._thread.run(_which_hold, [read for _, read in batch], words, secrets)
            found += [one for (one, _), holds_them in zip(batch, held, strict=True) if holds_them]
        return found

    def _batch(self, known: Iterator[KnownRequest]) -> list[tuple[KnownRequest, Callable[[], Capture]]]:
        """Returns the next requests whose contents are here, with what reads those: so many that a thread has enough to
        do. While they are put together nobody else is served."""
        batch: list[tuple[KnownRequest, Callable[[], Capture]]] = []
        size = 0
        for one in known:
            if (read := self._recent.capture_reader(one)) is not None:
                batch.append((one, read))
                size += self._recent.state_of(one).bytes + _LEAST_SIZE
                if size >= _SEARCHED_AT_ONCE:
                    break
        return batch

    async def summary(self, request_id: str) -> Summary | None:
        return self._recent.summary(request_id)

    async def contents(self, request_id: str) -> RequestContents | None:
        read = self._recent.reader(request_id)
        return None if read is None else await self._thread.run(read)

    async def previous(self, conversation: str, before: int) -> Summary | None:
        return self._recent.previous(conversation, before)

    async def clear(self) -> None:
        self._recent.clear()

    def watch(self, after: int | None = None) -> AsyncGenerator[Sequence[Change], None]:
        return self._recent.watchers.watch(after)


def _which_hold(readers: Sequence[Callable[[], Capture]], words: Sequence[Word], secrets: Sequence[str]) -> list[bool]:
    captures = (read() for read in readers)
    return [holds(capture.texts(), words, [*secrets, *capture.secrets]) for capture in captures]
