"""State goes back where it is absent and where it belongs, and nowhere else."""

from typing import Any

import pytest

from gateway.core.conversation import UNREAD, Block, Reasoning, Source, Text, ToolCall, ToolResult, Turn
from gateway.core.provider_state import with_provider_state
from gateway.core.state_rule import StateRule
from gateway.core.thoughts import Thought
from gateway.memory.provider_state.cached_state import TurnState, cached_states, carried_states
from gateway.memory.provider_state.restore import (
    lacks_required,
    lacks_state,
    turns_in_reach,
    with_missing_state,
    without_foreign,
)
from gateway.providers.registry import PROFILES

PLAIN = StateRule(reasoning="plain", required="always")
SIGNED = StateRule(provider="p", reasoning="signed", fields=("phase",))
CALLS = StateRule(provider="p", calls=True)
FIELD = "reasoning_content"


def state(value: str, provider: str = "p") -> dict[str, Any]:
    return dict(with_provider_state(provider, {"signature": value}))


def call(number: int, extra: dict[str, Any] | None = None) -> ToolCall:
    return ToolCall(f"c{number}", "read", "{}", extra or {})


def said(*blocks: Block) -> Turn:
    return Turn("assistant", blocks, index=3, source=Source("d", {}))


USER, RESULT = Turn("user", (Text("q"),)), Turn("tool", (ToolResult("c0", (Text("r"),)),))
CALLING, SPEAKING = said(call(0)), said(Text("a"))
HISTORY = (USER, CALLING, RESULT, SPEAKING, USER, CALLING, RESULT, CALLING, RESULT)


@pytest.mark.parametrize(
    ("turns", "history", "reached"),
    [
        ("all", HISTORY, (1, 3, 5, 7)),
        ("calls", HISTORY, (1, 5, 7)),
        ("loop", HISTORY, (5, 7)),
        # A word of the user behind results is part of the loop on wires that join the two.
        ("loop", (*HISTORY, USER), (5, 7)),
        ("loop", (*HISTORY, SPEAKING, USER), ()),
        ("loop", (CALLING, RESULT), (0,)),
    ],
)
def test_which_turns_are_in_reach(turns: Any, history: tuple[Turn, ...], reached: tuple[int, ...]) -> None:
    assert turns_in_reach(history, StateRule(turns=turns)) == reached


def test_plain_reasoning_stands_before_all_else_in_the_providers_field() -> None:
    restored = with_missing_state(CALLING, TurnState((Thought("hm"),)), PLAIN, "reasoning")
    assert restored.blocks == (Reasoning("hm", "reasoning"), call(0))
    assert restored.source is None
    assert restored.index == 3


def test_signed_pieces_stand_at_their_places() -> None:
    kept = TurnState(
        (
            Thought("one", state("1")),
            Thought("", state("2")),
            Thought("three", state("3"), 0, True),
            Thought("four", state("4"), 1, True),
            Thought("last", state("5"), 2, True),
        )
    )
    one, two, three, four, last = [Reasoning(thought.text, FIELD, thought.extra) for thought in kept.thoughts]
    restored = with_missing_state(said(Text("a"), call(0), call(1)), kept, SIGNED, FIELD)
    assert restored.blocks == (one, two, Text("a"), three, call(0), four, call(1), last)
    # A client that sends the text behind the calls, and one that sends none.
    assert with_missing_state(said(call(0), call(1)), kept, SIGNED, FIELD).blocks == (
        one,
        two,
        three,
        call(0),
        four,
        call(1),
        last,
    )


def test_what_the_client_sends_itself_comes_first() -> None:
    kept = TurnState((Thought("kept", state("kept")),), (state("kept"),), {"phase": "kept"})
    own = Reasoning("own", extra=state("own"))
    assert with_missing_state(said(own, call(0)), kept, SIGNED, FIELD).blocks == (own, call(0))
    assert with_missing_state(said(call(0, state("own"))), kept, CALLS, FIELD).calls == (call(0, state("own")),)
    phased = Turn("assistant", (own,), extra={"phase": "own"})
    assert with_missing_state(phased, kept, SIGNED, FIELD) is phased
    beside = Turn("assistant", (Text("a"),), extra=state("own"))
    assert not lacks_required(beside, SIGNED, FIELD)


def test_a_signature_returns_to_reasoning_that_the_client_has_kept_and_never_to_changed_text() -> None:
    kept = TurnState((Thought("one ", state("1")), Thought("two", state("2"), 0, True)))
    whole = with_missing_state(said(Reasoning("one two"), Text("a"), call(0)), kept, SIGNED, FIELD)
    assert [block.extra for block in whole.blocks if isinstance(block, Reasoning)] == [state("1"), state("2")]
    edited = said(Reasoning("one, two"), Text("a"), call(0))
    assert with_missing_state(edited, kept, SIGNED, FIELD) is edited


def test_a_turn_that_a_change_would_rob_of_its_unread_parts_stays_as_it_is() -> None:
    turn = Turn("assistant", (call(0),), source=Source("d", {}, unread=UNREAD))
    assert with_missing_state(turn, TurnState((Thought("hm"),)), PLAIN, FIELD) is turn


def test_each_call_gets_its_own_state_back() -> None:
    kept = TurnState(calls=(state("s"), {}))
    restored = with_missing_state(said(Text("a"), call(0, {"type": "x"}), call(1)), kept, CALLS, FIELD)
    assert restored.calls == (call(0, {"type": "x", **state("s")}), call(1))
    other = said(call(0))
    assert with_missing_state(other, kept, CALLS, FIELD) is other


def test_fields_go_back_beside_those_of_the_client() -> None:
    rule = StateRule(fields=("details",), turns="all")
    turn = Turn("assistant", (Text("a"),), extra={"x": 1})
    assert lacks_required(turn, rule, FIELD)
    assert with_missing_state(turn, TurnState(fields={"details": [1]}), rule, FIELD).extra == {"x": 1, "details": [1]}


def test_a_turn_that_lacks_only_what_not_every_answer_has_lacks_nothing_required() -> None:
    turn = said(Reasoning("a", extra=state("s")), Text("b"))
    assert lacks_state(turn, SIGNED, FIELD)
    assert not lacks_required(turn, SIGNED, FIELD)


def test_reasoning_in_a_field_that_only_this_provider_has_is_present() -> None:
    turn = Turn("assistant", (call(0),), extra={"thinking_text": "hm"})
    assert not lacks_state(turn, PLAIN, "thinking_text")
    assert lacks_state(turn, PLAIN, FIELD)


def test_foreign_state_is_removed_with_the_reasoning_that_it_signs_and_nothing_else() -> None:
    turn = Turn(
        "assistant",
        (
            Reasoning("signed", extra=state("s")),
            Reasoning("other", extra=state("o", "q")),
            Text("a"),
            ToolCall("c", "n", "{}", {"type": "x", **state("s")}),
        ),
        extra={"extra_content": {**state("s")["extra_content"], **state("o", "q")["extra_content"]}},
    )
    cleaned = without_foreign(turn, "p")
    assert cleaned.blocks == (
        Reasoning("other", extra=state("o", "q")),
        Text("a"),
        ToolCall("c", "n", "{}", {"type": "x"}),
    )
    assert cleaned.extra == state("o", "q")
    assert not [*carried_states(cleaned, SIGNED)]


def test_a_client_carries_what_was_kept_whatever_fields_its_dialect_leaves_out() -> None:
    extra = dict(with_provider_state("p", {"id": "rs", "encrypted_content": "e", "status": "done"}))
    carried = said(Reasoning("", extra=dict(with_provider_state("p", {"encrypted_content": "e"}))))
    kept = TurnState((Thought("", extra),))
    assert [*carried_states(carried, SIGNED)] == [*cached_states(kept, SIGNED)] == [{"encrypted_content": "e"}]


def test_state_of_calls_needs_the_name_of_its_provider() -> None:
    with pytest.raises(ValueError, match="provider is missing"):
        StateRule(calls=True)
    with pytest.raises(ValueError, match="provider is missing"):
        StateRule(reasoning="signed")


def test_the_profiles_name_the_providers_that_want_state_back() -> None:
    wanting = {name for name, profile in PROFILES.items() if profile.state is not None}
    assert wanting == {"anthropic", "deepseek-thinking", "kimi-thinking", "minimax", "glm", "openrouter", "gemini"}
