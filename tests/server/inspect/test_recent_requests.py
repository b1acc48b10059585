import asyncio
import gc
from typing import Any

import pytest

from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.dialect import RequestHead
from gateway.inspector.filter import read_filter
from gateway.inspector.requests import ContentsReader, RequestContents
from gateway.registry import load_dialect
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.recent_requests import RecentRequests
from gateway.server.telemetry.request_context import CHAT, Observers, RequestContext
from gateway.settings import InspectorSettings


def recent_of(**settings: Any) -> RecentRequests:
    return RecentRequests(InspectorSettings(**settings))


def begin(recent: RecentRequests, name: str = "", route: str = CHAT) -> RequestContext:
    headers = {b"x-request-id": name.encode()} if name else {}
    context = RequestContext("POST", "/v1/chat/completions", route, headers, Observers(recent))
    capture = capture_of(recent, context)
    if capture is not None:
        capture.begin(load_dialect(), RequestHead("/v1/chat/completions"))
    return context


def capture_of(recent: RecentRequests, context: RequestContext) -> Capture | None:
    live = recent._live.get(context)
    return None if live is None else live.capture


def serve(recent: RecentRequests, name: str, size: int = 10) -> None:
    context = begin(recent, name)
    for observe in context.observers.body:
        observe(context, b"x" * size)
    context.conclude(200)


def contents_of(recent: RecentRequests, request_id: str) -> RequestContents | None:
    read = recent.reader(request_id)
    return None if read is None else read()


def test_a_request_is_shown_from_its_beginning() -> None:
    recent = recent_of()
    context = begin(recent, "req-1")
    (live,) = recent.listed()
    assert live.live and live.id == "req-1" and live.status == 0
    context.model = "gpt"
    context.code = "upstream_timeout"
    context.note([Notice("repair", "added", "TOOL_ORPHAN", "x"), Notice("trim", "dropped", "TOOL_ORPHAN", "x")])
    context.record([UsageReport(3, 4)])
    assert recent.listed()[0].model == "gpt"
    context.conclude(504)
    (ended,) = recent.listed()
    assert not ended.live and (ended.status, ended.code) == (504, "upstream_timeout")
    assert (ended.changes, ended.rules) == ("repair=1; trim=1", ("TOOL_ORPHAN",))
    assert (ended.prompt_tokens, ended.completion_tokens) == (3, 4)


def test_only_requests_of_models_are_kept() -> None:
    recent = recent_of(contents="always")
    assert capture_of(recent, begin(recent, route="models")) is None and recent.listed() == []


async def test_the_newest_summaries_stay() -> None:
    recent = recent_of(keep=3)
    for number in range(5):
        serve(recent, f"req-{number}")
    assert [one.id for one in recent.listed()] == ["req-4", "req-3", "req-2"]
    assert [one.id for one in recent.listed(limit=1)] == ["req-4"]
    assert [one.id for one in recent.listed(before=recent.listed()[0].seq)] == ["req-3", "req-2"]
    found = await recent.found(read_filter("id:*-3").matches)
    assert [one.id for one in recent.page(found, None, 10)] == ["req-3"]
    assert recent.summary("req-0") is None and contents_of(recent, "req-0") is None


def test_the_oldest_contents_go_first_and_the_summary_says_so() -> None:
    recent = recent_of(contents="always", keep_mb=1300 / 2**20)
    for number in range(4):
        serve(recent, f"req-{number}", 400)
    listed = {one.id: one for one in recent.listed()}
    assert {name: one.contents for name, one in listed.items()} == {
        "req-0": "evicted",
        "req-1": "evicted",
        "req-2": "kept",
        "req-3": "kept",
    }
    assert listed["req-0"].bytes == listed["req-1"].bytes == 0
    assert 400 < listed["req-2"].bytes == listed["req-3"].bytes < 600
    assert contents_of(recent, "req-1") is None and contents_of(recent, "req-2") is not None


def test_a_flood_is_bounded_and_of_equal_ids_the_newest_stays() -> None:
    recent = recent_of(contents="always", keep=50, keep_mb=2600 / 2**20)
    for number in range(1000):
        serve(recent, f"req-{number % 7}" if number % 3 else f"req-x{number}", 100)
    listed = recent.listed(limit=100)
    assert len({one.id for one in listed}) == len(listed) == 7 + 17 and recent.total == 50
    assert [one.seq for one in listed] == sorted((one.seq for one in listed), reverse=True)
    kept = [one for one in listed if one.contents == "kept"]
    assert kept == listed[: len(kept)] and sum(one.bytes for one in kept) <= 2600 and len(recent._contents._spans) == 10
    newest = recent.summary("req-5")
    assert newest == next(one for one in listed if one.id == "req-5")
    recent.clear()
    assert (recent.total, len(recent._contents._spans), recent.summary("req-5")) == (0, 0, None)
    serve(recent, "req-1")
    assert recent.summary("req-1") is not None


def test_what_is_evicted_is_freed() -> None:
    recent = recent_of(contents="always", keep=1)
    context = begin(recent, "req-freed")
    context.conclude(200)
    del context
    kept = [one for one in gc.get_objects() if isinstance(one, RequestContext) and one.id == "req-freed"]
    assert kept == [] and recent.summary("req-freed") is not None


@pytest.mark.full
def test_a_flood_leaves_no_more_than_the_bounds() -> None:
    """Counted, not timed: what stays behind 3,000 requests of 10 KB."""
    recent = recent_of(contents="always", keep=200, keep_mb=1 / 4)

    def alive(kind: type) -> int:
        gc.collect()
        return sum(type(one) is kind for one in gc.get_objects())

    before = alive(Capture)
    for number in range(3000):
        serve(recent, f"req-{number}", 10_000)
    kept = [one for one in recent.listed(limit=1000) if one.contents == "kept"]
    assert recent.total == len(recent.listed(limit=1000)) == 200
    assert 0.9 * 2**18 < sum(one.bytes for one in kept) <= 2**18 and len(kept) == 25
    # Contents are no objects any more, and of each other request less than 400 bytes stay.
    assert alive(Capture) == before
    assert len(recent._ended) == 200 and len(recent._ended._unpacked) < 64
    assert sum(len(piece.requests) for piece in recent._ended._packed) < 400 * (200 + 64)


def test_a_body_over_the_cap_takes_no_memory_of_others() -> None:
    recent = recent_of(contents="always", request_mb=1 / 2**10, keep_mb=4 / 2**10)
    serve(recent, "req-small", 500)
    for number in range(10):
        serve(recent, f"req-{number}", 2**20)
    summaries = {one.id: one for one in recent.listed()}
    assert {one.contents for one in summaries.values()} == {"kept"} and summaries["req-1"].bytes < 300
    contents = contents_of(recent, "req-1")
    assert contents is not None and contents.interaction.request.absent == "over_the_cap"


def test_what_is_forgotten_is_no_more_in_memory() -> None:
    recent = recent_of(contents="always")
    serve(recent, "req-1", 500)
    assert recent._contents._block is not None and b"x" * 500 in recent._contents._block[:]
    recent.clear()
    assert recent._contents._block is None


def test_contents_are_kept_only_as_the_settings_say() -> None:
    never = recent_of(contents="never")
    assert capture_of(never, begin(never)) is None
    always = recent_of(contents="always")
    assert capture_of(always, begin(always)) is not None
    watched = recent_of()
    assert capture_of(watched, begin(watched)) is None
    watched.watchers.queues.add(asyncio.Queue())
    assert capture_of(watched, begin(watched)) is not None
    saving = recent_of(contents="never")
    saving.on_end.append(lambda read: None)
    assert capture_of(saving, begin(saving)) is not None


def test_what_is_read_of_a_request_that_is_served_is_what_had_come_when_it_was_asked_for() -> None:
    """Another thread reads it meanwhile."""
    recent = recent_of(contents="always", request_mb=1 / 2**10)
    context = begin(recent, "req-1")
    capture = capture_of(recent, context)
    assert capture is not None
    for number in range(20):
        capture.read(b"%10d" % number)
    read = recent.reader("req-1")
    assert read is not None
    before = read()
    for number in range(20):
        capture.read(b"%10d" % number)
        context.note([Notice("repair", "added", "TOOL_ORPHAN", "x")])
    capture.send()
    assert read() == before != contents_of(recent, "req-1")
    assert before.interaction.gaps and not before.interaction.notices


def test_who_saves_gets_every_request_that_ends() -> None:
    recent = recent_of()
    saved: list[ContentsReader] = []
    recent.on_end.append(saved.append)
    serve(recent, "req-1")
    (one,) = (read().interaction for read in saved)
    assert one.request.id == "req-1" and one.end is not None and one.end.status == 200


def test_the_id_that_two_requests_chose_is_that_of_the_newer() -> None:
    recent = recent_of(contents="always")
    first, second = begin(recent, "same"), begin(recent, "same")
    first.conclude(500)
    (one,) = recent.listed()
    assert one.live and one.status == 0
    second.conclude(200)
    assert [one.status for one in recent.listed()] == [200]
    serve(recent, "same")
    contents = contents_of(recent, "same")
    assert len(recent.listed()) == 1 and contents is not None and contents.interaction.body == b"x" * 10


def test_clearing_leaves_what_is_running() -> None:
    recent = recent_of(contents="always")
    serve(recent, "req-1")
    begin(recent, "req-2")
    recent.clear()
    assert [one.id for one in recent.listed()] == ["req-2"]


def test_the_numbers_of_workers_differ_and_follow_each_other() -> None:
    recents = [recent_of(), recent_of(), recent_of()]
    for worker, recent in enumerate(recents, 1):
        recent.worker, recent.workers = worker, 3
    found = []
    for _ in range(100):
        for recent in recents:
            serve(recent, "req")
            found.append(recent.listed()[0].seq)
    assert len(set(found)) == 300
    for worker in range(3):
        assert found[worker::3] == sorted(found[worker::3])
        assert {seq % 3 for seq in found[worker::3]} == {worker}
    # Within JavaScript's whole numbers.
    assert max(found) < 2**53


@pytest.mark.parametrize("workers", [1, 3, 64])
def test_the_numbers_of_requests_that_begin_at_once_differ(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recent = recent_of()
    recent.worker, recent.workers = workers, workers
    monkeypatch.setattr("gateway.server.telemetry.request_context.time.monotonic", lambda: 30_000_000.123_456_7)
    contexts = [begin(recent, f"req-{number}") for number in range(100)]
    for context in contexts[::2]:
        context.conclude(200)
    listed = recent.listed()
    assert [one.id for one in listed] == [f"req-{number}" for number in range(99, -1, -1)]
    assert len({one.seq for one in listed}) == 100
    assert [one.seq for one in listed] == sorted((one.seq for one in listed), reverse=True)
    assert [one.id for one in recent.listed(before=listed[50].seq)] == [one.id for one in listed[51:]]


def begin_saying(recent: RecentRequests, name: str, text: str) -> RequestContext:
    context = begin(recent, name)
    capture = capture_of(recent, context)
    assert capture is not None
    capture.conversation = text
    return context


def test_the_request_before_is_the_newest_of_the_conversation_that_has_contents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recent = recent_of(contents="always")
    live = begin_saying(recent, "live", "a")
    for name, text in (("old", "a"), ("other", "b"), ("new", "a"), ("last", "c")):
        begin_saying(recent, name, text).conclude(200)

    def before(name: str, conversation: str) -> str | None:
        summary = recent.summary(name)
        assert summary is not None
        found = recent.previous(conversation, summary.seq)
        return None if found is None else found.id

    assert [before(name, "a") for name in ("last", "new", "old", "live")] == ["new", "old", "live", None]
    live.conclude(200)
    assert before("old", "a") == "live"
    # For the first one of a conversation no record of another request is read.
    newest, seq = recent.summary("last"), recent.listed()[0].seq
    monkeypatch.setattr(recent, "_known", lambda: pytest.fail("records are read"))
    assert newest is not None and newest.seq == seq and recent.previous("c", seq) is None
