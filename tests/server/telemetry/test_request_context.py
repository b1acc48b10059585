"""Tests the calls that observers of a request receive, and their order, over real sockets."""

import asyncio
import weakref
from collections.abc import Sequence
from typing import Final
from unittest.mock import Mock

import pytest

from adapters.openai_responses.client.steering import RESPONSES_STEERING
from gateway.core.errors import GatewayError
from gateway.core.events import Event, Finish, ResponseStart, TextDelta, ToolCallEnd, UsageReport
from gateway.core.notices import Notice
from gateway.exchange import Exchange
from gateway.server.api.answer_steering import AnswerSteering
from gateway.server.telemetry.request_context import Observers, Outcome, RequestContext, RequestObserver
from gateway.server.upstream.backends import Backend
from tests.server.backend import END, HEAD, Connection, answer, events
from tests.server.conftest import Start


class Recorder(RequestObserver):
    """Writes down every call."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def begin(self, context: RequestContext) -> None:
        self.seen.append(f"begin {context.method} {context.path} {context.route}")

    def connect(self, context: RequestContext, backend: Backend, exchange: Exchange) -> None:
        self.seen.append(f"connect {backend.name} {exchange.conversation.model}")

    def notices(self, context: RequestContext, notices: Sequence[Notice]) -> None:
        self.seen += [f"notice {notice.rule}" for notice in notices]

    def open_stream(self, context: RequestContext) -> None:
        self.seen.append("open_stream")

    def first_event(self, context: RequestContext, seconds: float) -> None:
        assert seconds > 0
        self.seen.append("first_event")

    def response(self, context: RequestContext, event: ResponseStart | Finish) -> None:
        self.seen.append(type(event).__name__)

    def usage(self, context: RequestContext, usage: UsageReport) -> None:
        self.seen.append(f"usage estimated={usage.estimated}")

    def error(self, context: RequestContext, error: GatewayError) -> None:
        self.seen.append(f"error {error.code}")

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        assert outcome.ms == round(context.seconds * 1000, 1)
        self.seen.append(f"conclude {outcome.status} {outcome.code} {outcome.changes}")


class Ends(RequestObserver):
    """Needs one event, and overrides one method."""

    def __init__(self) -> None:
        self.statuses: list[int] = []

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        self.statuses.append(outcome.status)


SENT: Final = "connect plain inner"


async def by_word(connection: Connection) -> None:
    """What the client's text asks for."""
    if b"refused" in connection.body:
        await connection.send(answer("500 Oh no", b"no"))
    elif b"cut" in connection.body:
        await connection.send(HEAD, events("text Hello"), END)
    else:
        await connection.send(HEAD, events("start", "text Hello", "finish"), END)


@pytest.mark.parametrize(
    ("word", "stream", "told", "outcome"),
    [
        ("well", False, (SENT, "first_event", "ResponseStart", "Finish", "usage estimated=True"), "200 - backend=1"),
        ("well", True, ("open_stream", SENT, "first_event", "ResponseStart", "Finish"), "200 - "),
        ("refused", False, (SENT, "error upstream_error"), "500 upstream_error "),
        (
            "cut",
            True,
            ("open_stream", SENT, "first_event", "ResponseStart", "error upstream_stream_truncated"),
            "200 upstream_stream_truncated ",
        ),
    ],
)
async def test_observers_are_told_what_happens_to_a_request(
    start: Start, word: str, stream: bool, told: tuple[str, ...], outcome: str
) -> None:
    gateway, _ = await start(by_word)
    recorder, ends = Recorder(), Ends()
    gateway.app.gateway_state.observers = Observers(recorder, ends)
    await gateway.chat(messages=[{"role": "user", "content": word}], stream=stream)
    first, *others, last = (one for one in recorder.seen if not one.startswith("notice "))
    assert (first, last) == ("begin POST /v1/chat/completions chat", f"conclude {outcome}")
    # How many reads the backend's answer takes decides whether its first event or its begin is told first.
    assert sorted(others) == sorted(told)
    assert len(ends.statuses) == 1


async def test_a_request_without_a_backend_begins_and_ends(start: Start) -> None:
    gateway, _ = await start(by_word)
    recorder = Recorder()
    gateway.app.gateway_state.observers = Observers(recorder)
    await gateway.client.get("/healthz")
    await gateway.client.get("/nowhere")
    assert recorder.seen == [
        *("begin GET /healthz other", "conclude 200 - "),
        *("begin GET /nowhere other", "conclude 404 unknown_url "),
    ]


def test_changes_are_counted_before_observers_are_told() -> None:
    recorder = Recorder()
    context = RequestContext("POST", "/", "other", {}, Observers(recorder))
    context.note([Notice("repair", "added", "CALL_ID_ADDED", "x"), Notice("encode", "seen", "EFFORT_CHANGED", "x")])
    context.conclude(200)
    context.conclude(500)
    assert recorder.seen == [
        "begin POST / other",
        "notice CALL_ID_ADDED",
        "notice EFFORT_CHANGED",
        "conclude 200 - repair=1",
    ]


def test_what_an_observer_does_not_override_is_not_called() -> None:
    ends = Ends()
    observers = Observers(ends, Recorder())
    assert observers.conclude[0] == ends.conclude
    calls = {name: called for name, called in vars(observers).items() if not name.startswith("_")}
    assert {name for name in calls if len(calls[name]) == 2} == {"conclude"}
    # All methods of an observer are told, one forgotten here would never be.
    assert calls.keys() == {name for name in vars(RequestObserver) if not name.startswith("_")}


def test_who_watches_an_answer_is_shown_the_reads_with_one_of_its_events_and_none_after_it() -> None:
    context = RequestContext("POST", "/", "chat", {}, Observers())
    shown: list[Sequence[Event]] = []
    texts: list[Event] = [TextDelta("a"), TextDelta("b")]
    call: list[Event] = [TextDelta("c"), ToolCallEnd(0)]
    context.watch(shown.append, frozenset({ToolCallEnd}))
    context.record(texts)
    context.record(call)
    context.watch(shown.append, frozenset({TextDelta}))
    context.record(texts)
    context.watch()
    context.record(call)
    assert shown == [call, texts]


async def _steered(context: RequestContext) -> weakref.ref[AnswerSteering]:
    """Runs an exchange that ends at once; returns its steering."""
    steering, nothing = AnswerSteering(RESPONSES_STEERING, None, b""), asyncio.sleep(0)
    await steering.run(nothing, context, Mock(), Mock(), Mock())
    return weakref.ref(steering)


def test_what_watches_a_steered_answer_does_not_outlive_it() -> None:
    """Nothing of a request has to wait for the garbage collector."""
    context = RequestContext("POST", "/", "chat", {}, Observers())
    assert asyncio.run(_steered(context))() is None
