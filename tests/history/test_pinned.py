"""Tests which user turns are pinned, by their place."""

import msgspec
import pytest
from hypothesis import given

from gateway.core.conversation import Turn
from gateway.history.classify import classify, is_said_by_user
from gateway.history.pinned import opening_turns, pinned_turns
from tests.history.strategies import assistant, broken_turns, calling, result, system, user


def rounds(*ids: str) -> list[Turn]:
    return [turn for call_id in ids for turn in (calling(call_id), result(call_id))]


def note() -> Turn:
    return msgspec.structs.replace(user("a note"), synthesized=True)


def reasons(*turns: Turn) -> dict[int, str]:
    return dict(pinned_turns(turns).reasons)


def test_the_instructions_and_the_task_before_the_first_answer_are_pinned() -> None:
    assert reasons(system(), user("AGENTS.md"), user("the task"), *rounds("a", "b")) == {1: "opened_loop", 2: "newest"}
    assert reasons(user("AGENTS.md"), user("the task"), assistant(), user("and?"), *rounds("a"), user("Stop.")) == {
        0: "before_first_answer",
        1: "before_first_answer",
        3: "opened_loop",
        6: "newest",
    }


def test_the_picture_of_a_result_does_not_take_the_place_of_the_task() -> None:
    turns = (user("the task"), *rounds("a"), user("Attached media"), *rounds("b"), user("Attached media"), *rounds("c"))
    assert reasons(*turns) == {0: "opened_loop", 6: "newest"}
    assert pinned_turns(turns).in_loop == (3,)


def test_a_loop_is_opened_behind_the_last_answer_without_calls() -> None:
    turns = (user("old"), *rounds("a"), assistant(), user("the task"), *rounds("b"), user("Stop, do Z."), *rounds("c"))
    assert reasons(*turns) == {0: "before_first_answer", 4: "opened_loop", 7: "newest"}
    assert pinned_turns(turns).in_loop == ()


def test_all_user_turns_that_open_a_loop_are_pinned_also_across_a_system_turn() -> None:
    turns = (user("old"), assistant(), user("the task"), system("late"), user("a reminder"), *rounds("a"), user("stop"))
    assert reasons(*turns) == {0: "before_first_answer", 2: "opened_loop", 4: "opened_loop", 7: "newest"}


def test_a_loop_without_a_question_has_no_opener() -> None:
    turns = (*rounds("a"), user("one"), *rounds("b"), user("two"), *rounds("c"))
    assert reasons(*turns) == {5: "newest"}
    assert pinned_turns(turns).in_loop == (2,)


def test_notes_of_the_gateway_are_neither_pinned_nor_in_the_loop() -> None:
    turns = (note(), user("the task"), *rounds("a"), note(), *rounds("b"), user("stop"), note())
    assert reasons(*turns) == {1: "opened_loop", 7: "newest"}
    assert pinned_turns(turns).in_loop == ()


ROUND = (calling("a"), result("a"))


@pytest.mark.parametrize(
    ("turns", "opening"),
    [
        ((user(), *ROUND, *ROUND), (0,)),
        ((user("rules"), user("task"), *ROUND), (0, 1)),
        ((system(), user(), *ROUND, user("media"), *ROUND), (1,)),
        ((user(), *ROUND, assistant(), user("next"), *ROUND, user("media")), (4,)),
        ((user(), *ROUND, assistant(), user("next"), user("and more"), *ROUND), (4, 5)),
        ((user(), *ROUND, assistant("remark"), *ROUND, user("stop, do Z"), *ROUND), (0,)),
        ((user(), *ROUND, note(), *ROUND), (0,)),
        ((user(), *ROUND, assistant(), system("Be kind."), user("next"), *ROUND), (5,)),
        ((user(), assistant(), user("next")), (2,)),
        ((*ROUND, *ROUND), ()),
        ((*ROUND, user("media"), *ROUND), ()),
        ((), ()),
    ],
)
def test_a_loop_is_opened_by_the_last_user_turns_behind_an_answer_or_the_beginning(
    turns: tuple[Turn, ...], opening: tuple[int, ...]
) -> None:
    assert opening_turns(turns) == opening


@pytest.mark.parametrize("turns", [(), (system(),), (system(), assistant())])
def test_without_a_user_turn_nothing_is_pinned(turns: tuple[Turn, ...]) -> None:
    assert reasons(*turns) == {}
    assert pinned_turns(turns).in_loop == ()


@given(broken_turns())
def test_law_the_newest_user_turn_is_that_of_the_classification(turns: tuple[Turn, ...]) -> None:
    found = pinned_turns(turns)
    newest = classify(turns).last_user
    assert [at for at, reason in found.reasons.items() if reason == "newest"] == [
        at for at in (newest,) if at is not None
    ]
    assert found.reasons.keys().isdisjoint(found.in_loop)
    assert all(turns[at].role == "user" for at in (*found.reasons, *found.in_loop))
    first = next((at for at, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
    assert found.reasons.keys() >= {at for at in range(first) if is_said_by_user(turns[at])}
