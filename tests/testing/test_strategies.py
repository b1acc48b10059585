import json
from collections.abc import Callable

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from gateway.core.conversation import Conversation
from gateway.core.policy import Policy
from gateway.history.prepare import prepare
from gateway.testing.strategies import arguments, conversations, damaged, pieces, texts

# Enough examples that a search which can succeed does.
UNSHRUNK = settings(phases=[Phase.generate], database=None, max_examples=5000)
WIRE = b"data: one\n\ndata: two\n\n"


@given(conversations())
def test_generated_conversations_break_no_rule(conversation: Conversation) -> None:
    assert [turn.index for turn in conversation.turns] == list(range(len(conversation.turns)))
    asked = [call.id for turn in conversation.turns for call in turn.calls]
    assert asked == [result.call_id for turn in conversation.turns for result in turn.results]
    strict = Policy(repair="strict", max_tool_results=None, max_history_messages=None)
    assert prepare(conversation, strict).conversation.turns == conversation.turns


@given(conversations(tools=False))
def test_conversations_without_tools_have_none(conversation: Conversation) -> None:
    assert conversation.tools == () and not any(turn.calls or turn.results for turn in conversation.turns)


@pytest.mark.parametrize(
    "kind",
    [
        lambda made: any(len(turn.calls) > 1 for turn in made.turns),
        lambda made: made.turns[-1].role == "tool",
        lambda made: made.turns[0].role == "system",
    ],
)
def test_conversations_of_many_kinds_are_found(kind: Callable[[Conversation], bool]) -> None:
    assert kind(find(conversations(), kind, settings=UNSHRUNK))


@given(texts(), arguments())
def test_texts_can_be_sent_and_arguments_are_objects(text: str, made: str) -> None:
    text.encode()
    assert isinstance(json.loads(made), dict)


@given(pieces(WIRE))
def test_pieces_are_the_wire(cutting: list[bytes]) -> None:
    assert b"".join(cutting) == WIRE


@pytest.mark.parametrize(
    "kind",
    [
        lambda made: len(made) < len(WIRE),
        lambda made: len(made) > len(WIRE),
        lambda made: made != WIRE and len(made) == len(WIRE),
    ],
)
def test_a_wire_is_damaged_in_many_ways(kind: Callable[[bytes], bool]) -> None:
    assert kind(find(damaged(WIRE), kind, settings=UNSHRUNK))


@given(st.data())
def test_damage_never_fails(data: st.DataObject) -> None:
    assert isinstance(data.draw(damaged(data.draw(st.binary(max_size=9)))), bytes)
