"""Joins the requests of this worker with those of the others."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from gateway.inspector.requests import Change, Listed, RequestContents, RequestSource
from gateway.inspector.summary import Summary
from gateway.inspector.totals import Totals, joined
from gateway.server.inspect.workers.peer import Peer, PeerGone

_PREFIX: Final = "inspect-"
_SUFFIX: Final = ".sock"
# So often changes wait for a watcher; then their senders wait, and count what it misses.
_MOST_WAITING: Final = 10
# A worker that has begun is found so soon.
_LOOK_S: Final = 1.0
# A watcher gets the changes of workers in turn: what one of them saw so many microseconds before the last that it got
# may not have reached it.
_OVERLAP: Final = 1_000_000
T = TypeVar("T")


def socket_path(folder: Path, worker: int) -> Path:
    """Returns where a worker answers."""
    return folder / f"{_PREFIX}{worker}{_SUFFIX}"


class AllRequests:
    """The requests of all workers of one run, a `RequestSource`; without a `folder`, those of this process. A worker
    that does not answer is left out."""

    def __init__(self, own: RequestSource, folder: Path | None = None, worker: int = 1) -> None:
        self._own = own
        self._folder = folder
        self._path = None if folder is None else socket_path(folder, worker)

    def _peers(self) -> list[Peer]:
        if self._folder is None:
            return []
        paths = sorted(self._folder.glob(f"{_PREFIX}*{_SUFFIX}"))
        return [Peer(path) for path in paths if path != self._path]

    async def seen(self) -> int:
        """Returns how many workers answer, this one among them."""
        return 1 + sum(await asyncio.gather(*(peer.is_there() for peer in self._peers())))

    async def listed(self, filter: str, before: int | None, limit: int) -> Listed:
        own = await self._own.listed(filter, before, limit)
        found = [own, *await self._ask(lambda peer: peer.listed(filter, before, limit))]
        requests = sorted((one for each in found for one in each.requests), key=lambda one: one.seq, reverse=True)
        matching, total = sum(each.matching for each in found), sum(each.total for each in found)
        return Listed(requests[:limit], matching, total, own.words)

    async def totals(self, filter: str) -> Totals:
        own = await self._own.totals(filter)
        return joined([own, *await self._ask(lambda peer: peer.totals(filter))])

    async def summary(self, request_id: str) -> Summary | None:
        """Returns the newest of this id: a client may choose one twice, and reach two workers."""
        found = [await self._own.summary(request_id), *await self._ask(lambda peer: peer.summary(request_id))]
        return _newest(found)

    async def contents(self, request_id: str) -> RequestContents | None:
        summary = await self.summary(request_id)
        own = await self._own.summary(request_id)
        if summary is None or (own is not None and own.seq == summary.seq):
            return await self._own.contents(request_id)
        found = await self._ask(lambda peer: _contents_of(peer, request_id, summary.seq))
        return next((one for one in found if one is not None), None)

    async def previous(self, conversation: str, before: int) -> Summary | None:
        own = await self._own.previous(conversation, before)
        return _newest([own, *await self._ask(lambda peer: peer.previous(conversation, before))])

    async def clear(self) -> None:
        await self._own.clear()
        await self._ask(lambda peer: peer.clear())

    async def watch(self, after: int | None = None) -> AsyncGenerator[Sequence[Change], None]:
        """Yields the changes of all workers until this one ends; their numbers never fall. Who comes back may get some
        of them twice."""
        waiting: asyncio.Queue[Sequence[Change] | None] = asyncio.Queue(_MOST_WAITING)
        number = after or 0
        if after is not None and self._folder is not None:
            after -= _OVERLAP
        watching = asyncio.create_task(self._watch_peers(waiting, after))
        own = asyncio.create_task(_pass_on(self._own, waiting, after, last=True))
        try:
            while (changes := await waiting.get()) is not None:
                yield [msgspec.structs.replace(change, number=max(number, change.number)) for change in changes]
                number = max(number, changes[-1].number)
        finally:
            for task in (watching, own):
                task.cancel()
            await asyncio.wait((watching, own))

    async def _watch_peers(self, changes: "asyncio.Queue[Sequence[Change] | None]", after: int | None) -> None:
        """Watches every other worker, and of one that begins later also what it has served by then."""
        tasks: dict[Path, asyncio.Task[None]] = {}
        try:
            while self._folder is not None:
                for peer in self._peers():
                    if peer.path not in tasks or tasks[peer.path].done():
                        tasks[peer.path] = asyncio.create_task(_pass_on(peer, changes, after))
                after = after or 0
                await asyncio.sleep(_LOOK_S)
        finally:
            for task in tasks.values():
                task.cancel()
            if tasks:
                await asyncio.wait(tasks.values())

    async def _ask(self, question: Callable[[Peer], Awaitable[T]]) -> list[T]:
        """Returns the answers of the other workers that answer."""
        found = await asyncio.gather(*(_answered(question(peer)) for peer in self._peers()))
        return [one for each in found for one in each]


async def _answered(answer: Awaitable[T]) -> Sequence[T]:
    try:
        return (await answer,)
    except PeerGone:
        return ()


async def _contents_of(peer: Peer, request_id: str, seq: int) -> RequestContents | None:
    summary = await peer.summary(request_id)
    return await peer.contents(request_id) if summary is not None and summary.seq == seq else None


def _newest(found: Sequence[Summary | None]) -> Summary | None:
    return max((one for one in found if one is not None), key=lambda one: one.seq, default=None)


async def _pass_on(
    source: RequestSource, changes: "asyncio.Queue[Sequence[Change] | None]", after: int | None, last: bool = False
) -> None:
    """Passes changes on while the source gives some; `last`: nothing follows its end."""
    try:
        # The generator is closed with the task, so that the source knows that nobody watches it.
        async with aclosing(source.watch(after)) as found:
            async for some in found:
                await changes.put(some)
    except PeerGone:
        return
    if last:
        await changes.put(None)
