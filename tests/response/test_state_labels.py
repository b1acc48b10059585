"""Every state of an answer has the label of its backend, once, in whatever event it comes."""

from typing import Final

import msgspec
import pytest

from gateway.core.conversation import Conversation, JsonObject, Text, Turn
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
from gateway.core.policy import Policy
from gateway.core.provider_state import state_label
from gateway.exchange import Exchange
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
