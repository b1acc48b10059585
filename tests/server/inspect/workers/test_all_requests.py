"""Three workers, each with requests and a socket of its own, shown as one."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.core.session import Session
from gateway.exchange import Exchange
from gateway.inspector.requests import Change, Listed
from gateway.inspector.sessions import session_trees
from gateway.server.inspect.own_requests import OwnRequests
from gateway.server.inspect.recent_requests import RecentRequests
from gateway.server.inspect.serial_thread import SerialThread
from gateway.server.inspect.workers import peer
from gateway.server.inspect.workers.all_requests import AllRequests, socket_path
from gateway.server.inspect.workers.served import serving_requests
from gateway.settings import InspectorSettings
from tests.server.inspect.test_recent_requests import begin, capture_of, contents_of, serve

WORKERS: Final = (1, 2, 3)


class Run:
    """The recents of some workers; `all` is what the first of them shows."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.recents: dict[int, RecentRequests] = {}
        self.own: dict[int, OwnRequests] = {}
        for worker in WORKERS:
            recent = self.recents[worker] = RecentRequests(InspectorSettings(**settings))  # type: ignore[arg-type]
            recent.worker, recent.workers = worker, len(WORKERS)
            self.own[worker] = OwnRequests(recent, SerialThread(), tuple, lambda: None)
        self.all = AllRequests(self.own[1], folder, 1)


@asynccontextmanager
async def running(**settings: str) -> AsyncIterator[tuple[Run, AsyncExitStack]]:
    """Some workers; what the stack closes is the sockets of all but the first."""
    # The path of a socket may have a hundred characters only.
    with TemporaryDirectory(prefix="dragoman-") as folder:
        run = Run(Path(folder), **settings)
        async with AsyncExitStack() as stack:
            for worker in WORKERS:
                await stack.enter_async_context(serving_requests(run.own[worker], socket_path(run.folder, worker)))
            yield run, stack


async def test_the_lists_are_one_newest_first() -> None:
    async with running() as (run, _):
        for number, worker in enumerate((1, 2, 3, 2, 1)):
            serve(run.recents[worker], f"req-{number}")
        found = await run.all.listed("", None, 100)
        assert [(one.id, one.worker) for one in found.requests] == [
            *(("req-4", 1), ("req-3", 2), ("req-2", 3), ("req-1", 2), ("req-0", 1)),
        ]
        assert (found.matching, found.total, await run.all.seen()) == (5, 5, 3)
        assert len({one.seq for one in found.requests}) == 5
        page = await run.all.listed("", found.requests[1].seq, 2)
        assert [one.id for one in page.requests] == ["req-2", "req-1"]
        some = await run.all.listed("id:*-3", None, 100)
        assert ([one.id for one in some.requests], some.matching, some.total) == (["req-3"], 1, 5)
        assert [(await run.all.totals(filter)).requests for filter in ("", "id:*-3", "-id:*-3")] == [5, 1, 4]


async def test_a_session_is_one_over_all_workers() -> None:
    session = Session("codex", "s1", "a1", turn="t1")
    async with running(contents="always") as (run, _):
        for number, worker in enumerate((1, 2, 3, 2)):
            context = begin(run.recents[worker], f"req-{number}")
            capture = capture_of(run.recents[worker], context)
            assert capture is not None
            capture.session = session if number else None
            context.conclude(200)
        found = await run.all.listed("session:s1 agent:a1", None, 100)
        assert [(one.id, one.session) for one in found.requests] == [(f"req-{n}", session) for n in (3, 2, 1)]
        (tree,) = session_trees((await run.all.listed("", None, 100)).requests)
        assert (tree.id, tree.figures.requests, tree.figures.turns) == ("s1", 3, 1)


async def test_contents_come_from_the_worker_that_has_them() -> None:
    async with running(contents="always") as (run, _):
        for worker in WORKERS:
            serve(run.recents[worker], f"req-{worker}", size=worker)
        for worker in WORKERS:
            contents = await run.all.contents(f"req-{worker}")
            assert contents is not None and contents.interaction.body == b"x" * worker
            direct = contents_of(run.recents[worker], f"req-{worker}")
            assert contents == direct
        assert await run.all.contents("unknown") is None and await run.all.summary("unknown") is None


async def test_of_one_id_at_two_workers_the_newer_request_is_meant() -> None:
    async with running(contents="always") as (run, _):
        for worker, size in ((2, 5), (1, 6), (3, 7)):
            serve(run.recents[worker], "same", size)
        contents = await run.all.contents("same")
        assert contents is not None and contents.interaction.body == b"x" * 7


async def test_a_wrong_filter_is_refused_and_not_taken_for_a_dead_worker() -> None:
    async with running() as (run, _):
        with pytest.raises(InvalidRequest, match="colour"):
            await run.all.listed("colour:red", None, 10)


async def test_a_worker_that_has_ended_is_left_out() -> None:
    async with running() as (run, stack):
        for worker in WORKERS:
            serve(run.recents[worker], f"req-{worker}")
        await stack.aclose()
        # A killed worker leaves its socket behind.
        socket_path(run.folder, 2).touch()
        found = await run.all.listed("", None, 10)
        assert [one.id for one in found.requests] == ["req-1"] and await run.all.seen() == 1


async def test_a_worker_that_hangs_is_left_out_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "_READ_S", 0.1)
    async with running() as (run, _):
        serve(run.recents[2], "req-2")
        # The kernel takes connections for a process that is stopped, too.
        with socket.socket(socket.AF_UNIX) as stopped:
            stopped.bind(str(socket_path(run.folder, 4)))
            stopped.listen()
            async with asyncio.timeout(15):
                assert [one.id for one in (await run.all.listed("", None, 10)).requests] == ["req-2"]
                assert await run.all.seen() == len(WORKERS)
                async with aclosing(run.all.watch(after=0)) as changes:
                    assert len(await ended(changes, 1)) == 1


async def test_a_worker_that_is_busy_with_a_question_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "_READ_S", 0.3)
    async with running() as (run, _):
        serve(run.recents[2], "req-2")
        listed = run.own[2].listed

        async def slowly(filter: str, before: int | None, limit: int) -> Listed:
            await asyncio.sleep(0.6)
            return await listed(filter, before, limit)

        monkeypatch.setattr(run.own[2], "listed", slowly)
        assert [one.id for one in (await run.all.listed("", None, 10)).requests] == ["req-2"]


async def test_all_are_forgotten() -> None:
    async with running() as (run, _):
        for worker in WORKERS:
            serve(run.recents[worker], f"req-{worker}")
        await run.all.clear()
        assert [recent.total for recent in run.recents.values()] == [0, 0, 0]


async def ended(watching: AsyncGenerator[Sequence[Change], None], count: int) -> list[Change]:
    """Returns so many changes of requests that have ended."""
    found: list[Change] = []
    async for changes in watching:
        found += [change for change in changes if change.kind == "ended"]
        if len(found) >= count:
            break
    return found


async def ended_ids(watching: AsyncGenerator[Sequence[Change], None], until: str) -> list[str]:
    """Returns the ids of requests that have ended, up to this one."""
    found: list[str] = []
    async with asyncio.timeout(10):
        async for changes in watching:
            found += [one.summary.id for one in changes if one.kind == "ended" and one.summary is not None]
            if until in found:
                break
    return found


async def watched(run: Run) -> None:
    async with asyncio.timeout(10):
        while not all(recent.watchers.queues for recent in run.recents.values()):  # noqa: ASYNC110 (no event tells it)
            await asyncio.sleep(0.01)


async def test_a_watcher_sees_all_workers_and_makes_all_keep_contents() -> None:
    async with running() as (run, _):
        async with aclosing(run.all.watch()) as changes:
            told = asyncio.ensure_future(ended(changes, 3))
            await watched(run)
            for worker in WORKERS:
                serve(run.recents[worker], f"req-{worker}")
            found = await asyncio.wait_for(told, 10)
        assert {change.summary and change.summary.worker for change in found} == {1, 2, 3}
        assert [change.number for change in found] == sorted(change.number for change in found)
        for worker in WORKERS:
            assert contents_of(run.recents[worker], f"req-{worker}") is not None
        async with asyncio.timeout(10):
            while any(recent.watchers.queues for recent in run.recents.values()):  # noqa: ASYNC110 (no event tells it)
                await asyncio.sleep(0.01)


async def test_a_watcher_that_comes_again_gets_what_it_missed() -> None:
    async with running() as (run, _):
        serve(run.recents[2], "req-0")
        async with aclosing(run.all.watch(after=0)) as changes:
            (first,) = await asyncio.wait_for(ended(changes, 1), 10)
        serve(run.recents[3], "req-1")
        async with aclosing(run.all.watch(after=first.number)) as changes:
            assert "req-1" in await ended_ids(changes, "req-1")
        assert first.summary is not None and first.summary.id == "req-0"


async def test_a_watcher_that_comes_again_gets_what_another_worker_had_not_told_yet() -> None:
    async with running() as (run, _):
        serve(run.recents[3], "req-3")
        serve(run.recents[2], "req-2")
        async with aclosing(run.all.watch(after=0)) as changes:
            numbers = {one.summary.id: one.number for one in await ended(changes, 2) if one.summary is not None}
        async with aclosing(run.all.watch(after=numbers["req-2"])) as changes:
            assert "req-3" in await ended_ids(changes, "req-3")


async def test_of_a_worker_that_begins_later_all_is_told() -> None:
    async with running() as (run, stack):
        await stack.aclose()
        async with aclosing(run.all.watch()) as changes:
            told = asyncio.ensure_future(ended_ids(changes, "req-2"))
            while not run.recents[1].watchers.queues:  # noqa: ASYNC110 (no event tells it)
                await asyncio.sleep(0.01)
            # It serves a request before it is found.
            serve(run.recents[2], "req-2")
            async with serving_requests(run.own[2], socket_path(run.folder, 2)):
                assert await asyncio.wait_for(told, 10) == ["req-2"]


async def test_the_stream_ends_with_its_own_worker_and_not_with_another() -> None:
    async with running() as (run, _), aclosing(run.all.watch()) as changes:
        told = asyncio.ensure_future(ended(changes, 1))
        await watched(run)
        run.recents[2].watchers.close()
        serve(run.recents[3], "req-3")
        (change,) = await asyncio.wait_for(told, 10)
        assert change.summary is not None and change.summary.id == "req-3"
        run.recents[1].watchers.close()
        assert await asyncio.wait_for(ended(changes, 1), 10) == []


async def test_the_earlier_request_of_a_conversation_may_be_at_another_worker() -> None:
    async with running(contents="always") as (run, _):
        for number, worker in enumerate((2, 3, 1)):
            context = begin(run.recents[worker], f"req-{number}")
            capture = capture_of(run.recents[worker], context)
            assert capture is not None
            asked = Conversation((Turn("user", (Text("Hello"),)),))
            capture.prepare(Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20), asked, Policy()))
        last = await run.all.summary("req-2")
        assert last is not None and last.conversation
        previous = await run.all.previous(last.conversation, last.seq)
        assert previous is not None and previous.id == "req-1"
