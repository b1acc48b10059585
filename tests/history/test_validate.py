"""Tests the violations of a history: the rule, the message, the path and the id of each."""

import msgspec
import pytest

from gateway.core.conversation import Conversation, Text, ToolCall, Turn
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.rules import RULES, violation
from gateway.history.validate import validate
from tests.history.strategies import assistant, calling, conversation, result, system, user


def found(*turns: Turn) -> list[tuple[str, int, str, str | None]]:
    return [(one.rule, one.index, one.param, one.tool_call_id) for one in validate(conversation(*turns))]


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param((user(),), id="one user turn"),
        pytest.param((system(),), id="only a system turn"),
        pytest.param((user(), assistant(), assistant(), user(), user()), id="roles need not alternate"),
        pytest.param((user(), calling("a"), result("a")), id="ends with a result"),
        pytest.param((user(), calling("a"), result("a"), assistant()), id="one round"),
        pytest.param((user(), calling("a"), result("a"), user()), id="the user speaks right after the result"),
        pytest.param(
            (user(), calling("a", "b", "c"), result("c"), result("a"), result("b")), id="a batch in any order"
        ),
        pytest.param((user(), calling("a"), result("a"), calling("b"), result("b")), id="round upon round"),
        pytest.param((user(), calling("a", text="I look."), result("a")), id="text beside calls"),
        pytest.param((user(), calling("a"), result("a", ""), assistant("")), id="empty texts"),
        pytest.param((user(), Turn("assistant", ()), user()), id="an assistant that says nothing"),
    ],
)
def test_these_histories_keep_every_rule(turns: tuple[Turn, ...]) -> None:
    assert found(*turns) == []


def test_every_tool_message_of_a_parallel_batch_may_follow_another_tool_message() -> None:
    assert found(user(), calling("a", "b"), result("a"), result("b")) == []


def test_arguments_are_opaque_text() -> None:
    broken = Turn("assistant", (ToolCall("a", "shell", '{"command": "rm -rf'),))
    assert found(user(), broken, result("a")) == []


def test_a_tool_message_before_its_assistant_message_is_an_orphan() -> None:
    assert found(user(), result("a"), calling("a")) == [
        ("TOOL_ORPHAN", 1, "messages[1].role", "a"),
        ("CALLS_UNANSWERED", 2, "messages[2].tool_calls", "a"),
    ]


def test_a_tool_message_must_carry_the_id_of_a_call() -> None:
    assert found(user(), calling("a"), result("a"), result("x")) == [
        ("TOOL_ID_UNKNOWN", 3, "messages[3].tool_call_id", "x")
    ]


def test_a_tool_message_without_any_call_is_an_orphan() -> None:
    assert found(user(), result("a")) == [("TOOL_ORPHAN", 1, "messages[1].role", "a")]


def test_the_number_of_tool_messages_must_be_the_number_of_calls() -> None:
    assert found(user(), calling("a", "b"), result("a")) == [("CALLS_UNANSWERED", 1, "messages[1].tool_calls", "b")]
    assert found(user(), calling("a"), result("a"), result("a")) == [
        ("TOOL_ID_DUPLICATE", 3, "messages[3].tool_call_id", "a")
    ]


def test_unanswered_calls_are_reported_at_the_assistant_message_with_their_ids() -> None:
    (only,) = validate(conversation(user(), calling("a", "b", "c"), result("b")))
    assert (only.rule, only.index) == ("CALLS_UNANSWERED", 1)
    assert only.detail == "2 of 3 calls have no tool message directly after the message: 'a', 'c'"


def test_a_long_list_of_unanswered_calls_is_cut() -> None:
    (only,) = validate(conversation(calling(*"abcdefgh")))
    assert only.detail == "8 of 8 calls have no tool message directly after the message: 'a', 'b', 'c', 'd', 'e', ..."


@pytest.mark.parametrize("between", [user(), system(), assistant()])
def test_nothing_may_stand_between_calls_and_results(between: Turn) -> None:
    assert found(calling("a"), between, result("a")) == [
        ("CALLS_UNANSWERED", 0, "messages[0].tool_calls", "a"),
        ("TOOL_ORPHAN", 2, "messages[2].role", "a"),
    ]


def test_a_result_that_stands_apart_is_told_where_its_call_is() -> None:
    told = validate(conversation(calling("a"), user(), result("a")))[1]
    assert told.detail.endswith("; the call it answers is in messages[0]")


def test_a_result_behind_the_wrong_assistant_is_unknown_there() -> None:
    assert found(calling("a"), calling("b"), result("b"), result("a")) == [
        ("CALLS_UNANSWERED", 0, "messages[0].tool_calls", "a"),
        ("TOOL_ID_UNKNOWN", 3, "messages[3].tool_call_id", "a"),
    ]


def test_an_assistant_message_that_lost_its_calls_is_named() -> None:
    told = validate(conversation(user(), assistant("I look."), result("a"), result("b")))
    assert [one.detail for one in told] == ["the tool message follows messages[1], which has no tool_calls"] * 2


def test_two_calls_of_one_message_may_not_share_an_id() -> None:
    assert found(calling("a", "a"), result("a"), result("a")) == [
        ("CALL_ID_DUPLICATE", 0, "messages[0].tool_calls[1].id", "a")
    ]


def test_an_id_that_comes_again_in_a_later_round_is_a_duplicate_but_its_results_are_bound() -> None:
    assert found(calling("call_1"), result("call_1"), calling("call_1"), result("call_1")) == [
        ("CALL_ID_DUPLICATE", 2, "messages[2].tool_calls[0].id", "call_1")
    ]


def test_the_first_use_of_an_id_is_the_one_that_is_named() -> None:
    rounds = [turn for _ in range(3) for turn in (calling("call_1"), result("call_1"))]
    details = {one.detail for one in validate(conversation(*rounds))}
    assert details == {"the id 'call_1' names a call of messages[0] already"}


def test_missing_ids_on_both_sides_are_two_faults_and_not_a_missing_answer() -> None:
    assert found(calling(""), result("")) == [
        ("CALL_ID_MISSING", 0, "messages[0].tool_calls[0].id", None),
        ("TOOL_ID_MISSING", 1, "messages[1].tool_call_id", None),
    ]


def test_a_fault_that_the_dialect_told_already_is_told_once() -> None:
    fault = violation("TOOL_ID_MISSING", 1, param="messages[1].tool_call_id", detail="the id is null")
    given = msgspec.structs.replace(conversation(calling("a"), result("")), faults=(fault,))
    assert validate(given) == (fault,)


def test_faults_of_shape_and_of_pairing_come_in_the_order_of_the_messages() -> None:
    faults = (
        violation("TOOLS_COUNT", -1, param="tools"),
        violation("CONTENT_TYPE", 2, param="messages[2].content"),
    )
    given = msgspec.structs.replace(conversation(result("a"), user(), user(), result("b")), faults=faults)
    assert [(one.rule, one.index) for one in validate(given)] == [
        ("TOOLS_COUNT", -1),
        ("TOOL_ORPHAN", 0),
        ("CONTENT_TYPE", 2),
        ("TOOL_ORPHAN", 3),
    ]


def test_no_messages_at_all() -> None:
    assert [(one.rule, one.index, one.param) for one in validate(Conversation(()))] == [
        ("MESSAGES_EMPTY", -1, "messages")
    ]


def test_the_index_is_the_clients_not_the_position() -> None:
    moved = Turn("tool", result("x").blocks, index=7)
    assert [(one.index, one.param) for one in validate(Conversation((user(), moved)))] == [(7, "messages[7].role")]


def test_every_violation_carries_the_advice_of_its_rule() -> None:
    told = validate(conversation(calling("a", "a"), result("x"), user(), result("a"), result("")))
    assert len(told) >= 5
    assert all(one.advice == CANONICAL_PATHS.worded(RULES[one.rule].advice) for one in told)


def test_no_content_is_repeated_in_a_violation() -> None:
    secret = Turn("assistant", (Text("SECRET"), ToolCall("a", "read", '{"k": "SECRET"}')))
    told = validate(conversation(user("SECRET"), secret, result("x", "SECRET")))
    assert told
    assert "SECRET" not in repr(told)
