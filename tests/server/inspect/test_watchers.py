"""Those who watch are told what changes: each request once at a time, within bounds."""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec
import pytest

from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.inspector.requests import Change
from gateway.server.inspect.recent_requests import RecentRequests
from tests.server.inspect.test_recent_requests import begin, capture_of, recent_of, serve


async def test_what_changes_in_between_is_told_once() -> None:
    recent = recent_of()
    context = begin(recent, "req-1")
    context.model = "gpt"
    changes = recent.watchers.watch()
    told = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    for _ in range(2):
        recent.watchers.send()
    (change,) = await told
    assert change.kind == "changed" and change.summary is not None and change.summary.model == "gpt"
    context.conclude(200)
    recent.watchers.close()
    assert [[change.kind for change in found] async for found in changes] == [["ended"]]


async def test_nothing_is_told_again_and_again_without_a_watcher() -> None:
    recent = recent_of()
    changes = recent.watchers.watch(after=0)
    serve(recent, "req-1")
    assert [change.kind for change in await anext(changes)] == ["ended"]
    assert len(asyncio.all_tasks()) == 2
    await changes.aclose()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


def told(changes: Iterable[Change]) -> list[tuple[str, str | None]]:
    return [(one.kind, one.summary.id if one.summary else None) for one in changes]


async def test_a_watcher_sees_requests_begin_and_end() -> None:
    recent = recent_of()
    serve(recent, "req-0")
    found: list[Sequence[Change]] = []

    async def watch() -> None:
        found.extend([changes async for changes in recent.watchers.watch()])

    task = asyncio.create_task(watch())
    await asyncio.sleep(0)
    assert recent.watchers.queues
    context = begin(recent, "req-1")
    recent.watchers.send()
    context.conclude(200)
    serve(recent, "req-2")
    recent.watchers.close()
    await task
    # A request that is short has one change.
    assert list(map(told, found)) == [[("begun", "req-1")], [("ended", "req-1"), ("ended", "req-2")]]
    assert not recent.watchers.queues
    again = await anext(recent.watchers.watch(after=0))
    assert told(again) == [("ended", "req-0"), ("ended", "req-1"), ("ended", "req-2")]
    numbers = [change.number for changes in found for change in changes]
    assert again[0].number < numbers[0] < numbers[1] == again[1].number
    assert numbers == sorted(numbers)


def unread(recent: RecentRequests) -> "asyncio.Queue[Sequence[Change] | None]":
    """Adds a watcher that reads nothing, and returns what waits for it."""
    queue: asyncio.Queue[Sequence[Change] | None] = asyncio.Queue()
    recent.watchers.queues.add(queue)
    return queue


def waiting(queue: "asyncio.Queue[Sequence[Change] | None]") -> Sequence[Change]:
    found = queue.get_nowait()
    assert found is not None
    return found


def test_a_slow_watcher_is_told_how_much_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.inspect.watchers._MOST_WAITING", 2)
    recent = recent_of()
    queue = unread(recent)
    for number in range(4):
        serve(recent, f"req-{number}")
        recent.watchers.send()
    assert [told(waiting(queue)) for _ in range(queue.qsize())] == [[("ended", "req-0")], [("ended", "req-1")]]
    serve(recent, "req-4")
    recent.watchers.send()
    missed, last = waiting(queue)
    assert (missed.kind, missed.missed) == ("missed", 2) and told([last]) == [("ended", "req-4")]


def test_more_requests_than_anybody_reads_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.inspect.watchers._MOST_SENT", 2)
    monkeypatch.setattr("gateway.server.inspect.watchers._EACH_TICK", 1)
    recent = recent_of()
    queue = unread(recent)
    running = begin(recent, "req-0")
    for number in range(1, 5):
        serve(recent, f"req-{number}")
    recent.watchers.send()
    missed, *rest = waiting(queue)
    assert (missed.kind, missed.missed) == ("missed", 3)
    assert told(rest) == [("begun", "req-0"), ("ended", "req-1")]
    # Their contents are kept, and those of no others.
    assert [one.contents for one in recent.listed()] == [*["never_kept"] * 3, "kept", "kept"]
    running.conclude(200)
    serve(recent, "req-5")
    serve(recent, "req-6")
    recent.watchers.send()
    missed, *rest = waiting(queue)
    # Of what they are told of, they are told the end.
    assert (missed.missed, told(rest)) == (1, [("ended", "req-0"), ("ended", "req-5")])
    assert [one.contents for one in recent.listed(limit=2)] == ["never_kept", "kept"]


def test_requests_that_are_served_for_long_are_told_within_the_same_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.inspect.watchers._MOST_SENT", 2)
    monkeypatch.setattr("gateway.server.inspect.watchers._EACH_TICK", 1)
    recent = recent_of()
    queue = unread(recent)
    for number in range(4):
        begin(recent, f"req-{number}")
    found = []
    for _ in range(4):
        recent.watchers.send()
        if not queue.empty():
            found.append(told(waiting(queue)))
    assert found == [
        [("missed", None), ("begun", "req-0"), ("begun", "req-1")],
        [("changed", "req-2")],
        [("changed", "req-3")],
    ]


def test_only_what_is_served_is_looked_at_for_changes() -> None:
    recent = recent_of(keep=1)
    queue = unread(recent)
    contexts = [begin(recent, f"req-{number}") for number in range(4)]
    recent.watchers.send()
    waiting(queue)
    contexts[3].conclude(200)
    for context in contexts:
        context.model = "gpt"
    recent.watchers.send()
    # Those that are served give way to no others.
    assert told(waiting(queue)) == [("ended", "req-3"), *[("changed", f"req-{number}") for number in range(3)]]
    for context in contexts[:3]:
        context.conclude(200)
    recent.watchers.send()
    assert told(waiting(queue)) == [("ended", f"req-{number}") for number in range(3)]
    recent.watchers.send()
    assert queue.empty() and [one.id for one in recent.listed()] == ["req-2"]


async def test_the_end_of_a_request_that_began_before_somebody_watched_is_told() -> None:
    """Also where it ends at once: the list showed it as one that is served."""
    recent = recent_of()
    context = begin(recent, "req-1")
    changes = recent.watchers.watch()
    found = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    assert [one.live for one in recent.listed()] == [True]
    context.conclude(200)
    recent.watchers.send()
    assert told(await found) == [("ended", "req-1")]
    await changes.aclose()


async def test_who_comes_back_is_told_the_latest_and_how_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.inspect.watchers._MOST_SENT", 2)
    recent = recent_of()
    for number in range(5):
        serve(recent, f"req-{number}")
    missed, *rest = await anext(recent.watchers.watch(after=0))
    assert (missed.kind, missed.missed) == ("missed", 3) and told(rest) == [("ended", "req-3"), ("ended", "req-4")]
    again = await anext(recent.watchers.watch(after=missed.number))
    assert [*again] == rest


@pytest.mark.parametrize("change", ["key", "model", "backend", "code", "streamed", "rules", "usage", "conversation"])
def test_everything_that_a_summary_shows_is_told_when_it_changes_and_nothing_else(change: str) -> None:
    recent = recent_of(contents="always")
    queue = unread(recent)
    context = begin(recent, "req-1")
    recent.watchers.send()
    (begun,) = waiting(queue)
    match change:
        case "rules":
            context.note([Notice("repair", "added", "TOOL_ORPHAN", "x")])
        case "usage":
            context.record([UsageReport(3, 4)])
        case "conversation":
            capture = capture_of(recent, context)
            assert capture is not None
            capture.conversation = "a1"
        case _:
            setattr(context, change, True if change == "streamed" else "other")
    for _ in range(3):
        recent.watchers.send()
    (changed,) = waiting(queue)
    assert queue.empty() and changed.kind == "changed" and changed.summary is not None and begun.summary is not None
    was, now = msgspec.structs.asdict(begun.summary), msgspec.structs.asdict(changed.summary)
    made = {name for name, value in now.items() if value != was[name]}
    names = {"streamed": {"stream"}, "rules": {"rules", "changes"}, "usage": {"prompt_tokens", "completion_tokens"}}
    assert made - {"ms", "bytes"} == names.get(change, {change})


def test_a_request_that_goes_on_without_a_change_costs_no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand streams are looked at five times a second."""
    recent = recent_of()
    queue = unread(recent)
    contexts = [begin(recent, f"req-{number}") for number in range(3)]
    recent.watchers.send()
    waiting(queue)
    monkeypatch.setattr(recent.watchers, "_shown", lambda known: pytest.fail("a summary is made"))
    recent.watchers.send()
    assert queue.empty() and len(contexts) == 3
