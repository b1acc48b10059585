"""A client gets of an answer's state what its dialect can hold, whatever the gateway keeps for itself."""

from gateway.core.conversation import ALL_CONTENT, Conversation
from gateway.core.events import Event, Finish, PassthroughFields, ReasoningDelta, ReasoningEnd, TextDelta
from gateway.core.notices import Notice
from gateway.response.own_state import OwnStateFilter

ONE, TWO = ReasoningEnd({"a": 1}), ReasoningEnd({"a": 2})
FINISH = Finish("stop")


def shown(*events: Event, passes: bool = False, reasoning: bool = True) -> list[Event]:
    reads = ALL_CONTENT if reasoning else ALL_CONTENT - {"reasoning"}
    own = OwnStateFilter(Conversation((), reads=reads), passes=passes)
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
