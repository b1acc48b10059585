"""Tests what becomes of provider state in an answer: its label, a client without a place for it, what is stored."""

from typing import Final

import msgspec
import pytest

from gateway.core.conversation import ALL_CONTENT, EMPTY, Conversation, JsonObject, Text, Turn
from gateway.core.errors import BackendError, BackendRejected
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import state_label, with_provider_state
from gateway.core.state_rule import ALL_STATE, NO_STATE, HeldState
from gateway.exchange import Exchange
from gateway.response.provider_state import STATE_NOT_SHOWN, StoredStateFilter, with_lost_state_notice
from tests.scripted import ScriptedAdapter

LABEL: Final = state_label("adapter", "host", "KEY")
ASKED: Final = Conversation((Turn("user", (Text("Hello"),)),), stream=True)
SIGNED: Final[JsonObject] = {"extra_content": {"google": {"thought_signature": "s"}}}


def answered(*script: list[Event] | BackendError, label: str | None = LABEL) -> list[Event]:
    exchange = Exchange(ScriptedAdapter(*script), ASKED, Policy(), label=label)
    events: list[Event] = []
    try:
        for _ in script:
            events += exchange.feed(b".")
    except BackendError as error:
        events += error.take_events()
    return events


@pytest.mark.parametrize(
    "event",
    [
        ReasoningEnd(SIGNED),
        ReasoningEnd({"extra_content": {"anthropic": {"signature": "s"}, "openai": {"encrypted_content": "s"}}}),
        PassthroughFields("delta", SIGNED),
        PassthroughFields("delta", {"thoughtSignature": "s"}),
        PassthroughFields("event", {"inlineData": {"data": "AAAA"}, "thoughtSignature": "s"}),
        PassthroughFields("event", {"type": "x", "item": {"type": "compaction", "encrypted_content": "s"}}),
    ],
)
@pytest.mark.parametrize("beside", [[], [TextDelta("a")], [Finish("stop")]])
def test_a_state_gets_the_label_once(event: Event, beside: list[Event]) -> None:
    expected = msgspec.json.encode(event).replace(b'"s"', f'"{LABEL}s"'.encode())
    found = answered([ResponseStart()], [event, *beside])
    assert [msgspec.json.encode(one) for one in found if type(one) is type(event)] == [expected]
    assert event in answered([ResponseStart()], [event, *beside], label=None)


def test_the_state_of_a_call_gets_the_label_once() -> None:
    script: list[Event] = [ToolCallStart(0, "k", "f", extra=SIGNED), ToolCallDelta(0, "{}"), ToolCallEnd(0)]
    started = next(event for event in answered(script) if isinstance(event, ToolCallStart))
    assert started.extra == {"extra_content": {"google": {"thought_signature": LABEL + "s"}}}


def test_what_is_no_state_stays() -> None:
    fields = PassthroughFields("response", {"thoughtSignature": "of no part"})
    events: list[Event] = [fields, ReasoningDelta("s"), PassthroughFields("delta", {"logprobs": None}), TextDelta("s")]
    assert answered([ResponseStart(), *events])[1:] == events
    empty = ReasoningEnd({"extra_content": {"anthropic": {"signature": ""}}})
    assert empty in answered([empty])


def test_the_events_before_a_fault_have_the_label() -> None:
    fault = BackendRejected("no")
    fault.keep([TextDelta("a"), ReasoningEnd(SIGNED)])
    (end,) = [event for event in answered([ResponseStart()], fault) if isinstance(event, ReasoningEnd)]
    assert end.extra == {"extra_content": {"google": {"thought_signature": LABEL + "s"}}}


QUESTION: Final = (Turn("user", (Text("Hello"),)),)
SIGNATURE: Final = with_provider_state("google", {"thought_signature": "s"})
TEXT, FINISH = TextDelta("x"), Finish("stop")
OF_REASONING: Final = HeldState(frozenset({"google"}), frozenset())
OF_CALLS: Final = HeldState(frozenset({"other"}), frozenset({"google"}))


@pytest.mark.parametrize(
    ("event", "holds", "lost"),
    [
        (ReasoningEnd(SIGNATURE), NO_STATE, True),
        (ReasoningEnd(SIGNATURE), OF_REASONING, False),
        (ReasoningEnd(SIGNATURE), OF_CALLS, True),
        (ToolCallStart(0, "k", "f", extra=SIGNATURE), OF_REASONING, True),
        (ToolCallStart(0, "k", "f", extra=SIGNATURE), OF_CALLS, False),
        (ToolCallStart(0, "k", "f", extra=SIGNATURE), ALL_STATE, False),
        # No dialect writes what comes at the end of a call.
        (ToolCallEnd(0, SIGNATURE), ALL_STATE, True),
        (ToolCallEnd(0), NO_STATE, False),
    ],
)
def test_state_without_a_place_is_told(event: Event, holds: HeldState, *, lost: bool) -> None:
    told = [STATE_NOT_SHOWN] if lost else []
    assert with_lost_state_notice([TEXT, event, FINISH], holds) == [TEXT, event, *told, FINISH]


@pytest.mark.parametrize(
    "extra",
    [
        EMPTY,
        {"type": "custom"},
        {"extra_content": {}},
        with_provider_state("google", {"thought_signature": ""}),
        # What has no label, as an id, is no state.
        with_provider_state("warp", {"message_id": "m"}),
    ],
)
def test_what_is_no_state_is_not_told(extra: JsonObject) -> None:
    events: list[Event] = [ReasoningEnd(extra), ToolCallStart(0, "k", "f", extra=extra), ToolCallEnd(0, extra)]
    assert with_lost_state_notice(events, NO_STATE) is events


def test_it_is_told_once() -> None:
    ended = ReasoningEnd(SIGNATURE)
    script: list[list[Event]] = [[ended, ended], [ended], [TEXT, FINISH]]
    exchange = Exchange(ScriptedAdapter(*script), Conversation(QUESTION, stream=True, holds=NO_STATE), Policy())
    events = [event for _ in script for event in exchange.feed(b".")]
    assert [position for position, event in enumerate(events) if event == STATE_NOT_SHOWN] == [1]


ONE, TWO = ReasoningEnd({"a": 1}), ReasoningEnd({"a": 2})
FINISH = Finish("stop")


def shown(*events: Event, passes: bool = False, reasoning: bool = True) -> list[Event]:
    reads = ALL_CONTENT if reasoning else ALL_CONTENT - {"reasoning"}
    own = StoredStateFilter(Conversation((), reads=reads), passes=passes)
    # One event a read, as in a stream.
    return [event for one in events for event in own.feed([one])]


def test_a_client_of_the_backends_dialect_gets_everything() -> None:
    events = (ReasoningDelta("x"), ONE, PassthroughFields("delta", {"details": [1]}), TWO, FINISH)
    assert shown(*events, passes=True) == [*events]


def test_another_client_gets_no_field_that_only_the_gateway_asked_for() -> None:
    assert shown(PassthroughFields("delta", {"details": [1]}), TextDelta("x"), FINISH) == [
        TextDelta("x"),
        FINISH,
    ]


def test_every_state_stays_where_it_is() -> None:
    assert shown(ONE, TextDelta("y"), TWO, FINISH) == [ONE, TextDelta("y"), TWO, FINISH]


def test_a_client_that_declines_reasoning_gets_none() -> None:
    events = shown(ReasoningDelta("x"), ONE, TextDelta("y"), FINISH, reasoning=False)
    assert [event for event in events if not isinstance(event, Notice)] == [TextDelta("y"), FINISH]
    assert [event.rule for event in events if isinstance(event, Notice)] == ["REASONING_NOT_SHOWN"]


def test_a_client_of_the_same_api_gets_the_reasoning_that_its_backend_sends_nevertheless() -> None:
    events: list[Event] = [ReasoningDelta("x"), ONE, TextDelta("y"), FINISH]
    assert shown(*events, passes=True, reasoning=False) == events
