import asyncio
import gc
from typing import Any

import pytest

from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.dialects.base import RequestHead
from gateway.registry import load_dialect
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.filter import read_filter
from gateway.server.inspect.requests import ContentsReader, RequestContents
from gateway.server.inspect.ring import RequestRing
from gateway.server.telemetry.request_context import CHAT, Observers, RequestContext
from gateway.settings import InspectorSettings


def ring_of(**settings: Any) -> RequestRing:
    return RequestRing(InspectorSettings(**settings))


def begin(ring: RequestRing, name: str = "", route: str = CHAT) -> RequestContext:
    headers = {b"x-request-id": name.encode()} if name else {}
    context = RequestContext("POST", "/v1/chat/completions", route, headers, Observers(ring))
    capture = capture_of(ring, context)
    if capture is not None:
        capture.begin(load_dialect(), RequestHead("/v1/chat/completions"))
    return context


def capture_of(ring: RequestRing, context: RequestContext) -> Capture | None:
    live = ring._live.get(context)
    return None if live is None else live.capture


def serve(ring: RequestRing, name: str, size: int = 10) -> None:
    context = begin(ring, name)
    for observe in context.observers.body:
        observe(context, b"x" * size)
    context.conclude(200)


def contents_of(ring: RequestRing, request_id: str) -> RequestContents | None:
    read = ring.reader(request_id)
    return None if read is None else read()


def test_a_request_is_shown_from_its_beginning() -> None:
    ring = ring_of()
    context = begin(ring, "req-1")
    (live,) = ring.listed()
    assert live.live and live.id == "req-1" and live.status == 0
    context.model = "gpt"
    context.code = "upstream_timeout"
    context.note([Notice("repair", "added", "TOOL_ORPHAN", "x"), Notice("trim", "dropped", "TOOL_ORPHAN", "x")])
    context.record([UsageReport(3, 4)])
    assert ring.listed()[0].model == "gpt"
    context.conclude(504)
    (ended,) = ring.listed()
    assert not ended.live and (ended.status, ended.code) == (504, "upstream_timeout")
    assert (ended.changes, ended.rules) == ("repair=1; trim=1", ("TOOL_ORPHAN",))
    assert (ended.prompt_tokens, ended.completion_tokens) == (3, 4)


def test_only_requests_of_models_are_kept() -> None:
    ring = ring_of(contents="always")
    assert capture_of(ring, begin(ring, route="models")) is None and ring.listed() == []


async def test_the_newest_summaries_stay() -> None:
    ring = ring_of(keep=3)
    for number in range(5):
        serve(ring, f"req-{number}")
    assert [one.id for one in ring.listed()] == ["req-4", "req-3", "req-2"]
    assert [one.id for one in ring.listed(limit=1)] == ["req-4"]
    assert [one.id for one in ring.listed(before=ring.listed()[0].seq)] == ["req-3", "req-2"]
    found = await ring.found(read_filter("id:*-3").matches)
    assert [one.id for one in ring.page(found, None, 10)] == ["req-3"]
    assert ring.summary("req-0") is None and contents_of(ring, "req-0") is None


def test_the_oldest_contents_go_first_and_the_summary_says_so() -> None:
    ring = ring_of(contents="always", keep_mb=1300 / 2**20)
    for number in range(4):
        serve(ring, f"req-{number}", 400)
    listed = {one.id: one for one in ring.listed()}
    assert {name: one.contents for name, one in listed.items()} == {
        "req-0": "evicted",
        "req-1": "evicted",
        "req-2": "kept",
        "req-3": "kept",
    }
    assert listed["req-0"].bytes == listed["req-1"].bytes == 0
    assert 400 < listed["req-2"].bytes == listed["req-3"].bytes < 600
    assert contents_of(ring, "req-1") is None and contents_of(ring, "req-2") is not None


def test_a_flood_is_bounded_and_of_equal_ids_the_newest_stays() -> None:
    ring = ring_of(contents="always", keep=50, keep_mb=2500 / 2**20)
    for number in range(1000):
        serve(ring, f"req-{number % 7}" if number % 3 else f"req-x{number}", 100)
    listed = ring.listed(limit=100)
    assert len({one.id for one in listed}) == len(listed) == 7 + 17 and ring.total == 50
    assert [one.seq for one in listed] == sorted((one.seq for one in listed), reverse=True)
    kept = [one for one in listed if one.contents == "kept"]
    assert kept == listed[: len(kept)] and sum(one.bytes for one in kept) <= 2500 and len(ring._contents._spans) == 10
    newest = ring.summary("req-5")
    assert newest == next(one for one in listed if one.id == "req-5")
    ring.clear()
    assert (ring.total, len(ring._contents._spans), ring.summary("req-5")) == (0, 0, None)
    serve(ring, "req-1")
    assert ring.summary("req-1") is not None


def test_what_is_evicted_is_freed() -> None:
    ring = ring_of(contents="always", keep=1)
    context = begin(ring, "req-freed")
    context.conclude(200)
    del context
    kept = [one for one in gc.get_objects() if isinstance(one, RequestContext) and one.id == "req-freed"]
    assert kept == [] and ring.summary("req-freed") is not None


def test_a_flood_leaves_no_more_than_the_bounds() -> None:
    """Counted, not timed: what stays behind 3,000 requests of 10 KB."""
    ring = ring_of(contents="always", keep=200, keep_mb=1 / 4)

    def alive(kind: type) -> int:
        gc.collect()
        return sum(type(one) is kind for one in gc.get_objects())

    before = alive(Capture)
    for number in range(3000):
        serve(ring, f"req-{number}", 10_000)
    kept = [one for one in ring.listed(limit=1000) if one.contents == "kept"]
    assert ring.total == len(ring.listed(limit=1000)) == 200
    assert 0.9 * 2**18 < sum(one.bytes for one in kept) <= 2**18 and len(kept) == 25
    # Contents are no objects any more, and of each other request less than 400 bytes stay.
    assert alive(Capture) == before
    assert len(ring._ended) == 200 and len(ring._ended._unpacked) < 64
    assert sum(len(piece.requests) for piece in ring._ended._packed) < 400 * (200 + 64)


def test_a_body_over_the_cap_takes_no_memory_of_others() -> None:
    ring = ring_of(contents="always", request_mb=1 / 2**10, keep_mb=4 / 2**10)
    serve(ring, "req-small", 500)
    for number in range(10):
        serve(ring, f"req-{number}", 2**20)
    summaries = {one.id: one for one in ring.listed()}
    assert {one.contents for one in summaries.values()} == {"kept"} and summaries["req-1"].bytes < 300
    contents = contents_of(ring, "req-1")
    assert contents is not None and contents.interaction.request.absent == "over_the_cap"


def test_what_is_forgotten_is_no_more_in_memory() -> None:
    ring = ring_of(contents="always")
    serve(ring, "req-1", 500)
    assert ring._contents._block is not None and b"x" * 500 in ring._contents._block[:]
    ring.clear()
    assert ring._contents._block is None


def test_contents_are_kept_only_as_the_settings_say() -> None:
    never = ring_of(contents="never")
    assert capture_of(never, begin(never)) is None
    always = ring_of(contents="always")
    assert capture_of(always, begin(always)) is not None
    watched = ring_of()
    assert capture_of(watched, begin(watched)) is None
    watched.watchers.queues.add(asyncio.Queue())
    assert capture_of(watched, begin(watched)) is not None
    saving = ring_of(contents="never")
    saving.on_end.append(lambda read: None)
    assert capture_of(saving, begin(saving)) is not None


def test_what_is_read_of_a_request_that_is_served_is_what_had_come_when_it_was_asked_for() -> None:
    """Another thread reads it meanwhile."""
    ring = ring_of(contents="always", request_mb=1 / 2**10)
    context = begin(ring, "req-1")
    capture = capture_of(ring, context)
    assert capture is not None
    for number in range(20):
        capture.read(b"%10d" % number)
    read = ring.reader("req-1")
    assert read is not None
    before = read()
    for number in range(20):
        capture.read(b"%10d" % number)
        context.note([Notice("repair", "added", "TOOL_ORPHAN", "x")])
    capture.send()
    assert read() == before != contents_of(ring, "req-1")
    assert before.interaction.gaps and not before.interaction.notices


def test_who_saves_gets_every_request_that_ends() -> None:
    ring = ring_of()
    saved: list[ContentsReader] = []
    ring.on_end.append(saved.append)
    serve(ring, "req-1")
    (one,) = (read().interaction for read in saved)
    assert one.request.id == "req-1" and one.end is not None and one.end.status == 200


def test_the_id_that_two_requests_chose_is_that_of_the_newer() -> None:
    ring = ring_of(contents="always")
    first, second = begin(ring, "same"), begin(ring, "same")
    first.conclude(500)
    (one,) = ring.listed()
    assert one.live and one.status == 0
    second.conclude(200)
    assert [one.status for one in ring.listed()] == [200]
    serve(ring, "same")
    contents = contents_of(ring, "same")
    assert len(ring.listed()) == 1 and contents is not None and contents.interaction.body == b"x" * 10


def test_clearing_leaves_what_is_running() -> None:
    ring = ring_of(contents="always")
    serve(ring, "req-1")
    begin(ring, "req-2")
    ring.clear()
    assert [one.id for one in ring.listed()] == ["req-2"]


def test_the_numbers_of_workers_differ_and_follow_each_other() -> None:
    rings = [ring_of(), ring_of(), ring_of()]
    for worker, ring in enumerate(rings, 1):
        ring.worker, ring.workers = worker, 3
    found = []
    for _ in range(100):
        for ring in rings:
            serve(ring, "req")
            found.append(ring.listed()[0].seq)
    assert len(set(found)) == 300
    for worker in range(3):
        assert found[worker::3] == sorted(found[worker::3])
        assert {seq % 3 for seq in found[worker::3]} == {worker}
    # Within JavaScript's whole numbers.
    assert max(found) < 2**53


@pytest.mark.parametrize("workers", [1, 3, 64])
def test_the_numbers_of_requests_that_begin_at_once_differ(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = ring_of()
    ring.worker, ring.workers = workers, workers
    monkeypatch.setattr("gateway.server.telemetry.request_context.time.monotonic", lambda: 30_000_000.123_456_7)
    contexts = [begin(ring, f"req-{number}") for number in range(100)]
    for context in contexts[::2]:
        context.conclude(200)
    listed = ring.listed()
    assert [one.id for one in listed] == [f"req-{number}" for number in range(99, -1, -1)]
    assert len({one.seq for one in listed}) == 100
    assert [one.seq for one in listed] == sorted((one.seq for one in listed), reverse=True)
    assert [one.id for one in ring.listed(before=listed[50].seq)] == [one.id for one in listed[51:]]


def begin_saying(ring: RequestRing, name: str, text: str) -> RequestContext:
    context = begin(ring, name)
    capture = capture_of(ring, context)
    assert capture is not None
    capture.conversation = text
    return context


def test_the_request_before_is_the_newest_of_the_conversation_that_has_contents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ring = ring_of(contents="always")
    live = begin_saying(ring, "live", "a")
    for name, text in (("old", "a"), ("other", "b"), ("new", "a"), ("last", "c")):
        begin_saying(ring, name, text).conclude(200)

    def before(name: str, conversation: str) -> str | None:
        summary = ring.summary(name)
        assert summary is not None
        found = ring.previous(conversation, summary.seq)
        return None if found is None else found.id

    assert [before(name, "a") for name in ("last", "new", "old", "live")] == ["new", "old", "live", None]
    live.conclude(200)
    assert before("old", "a") == "live"
    # For the first one of a conversation no record of another request is read.
    newest, seq = ring.summary("last"), ring.listed()[0].seq
    monkeypatch.setattr(ring, "_known", lambda: pytest.fail("records are read"))
    assert newest is not None and newest.seq == seq and ring.previous("c", seq) is None
