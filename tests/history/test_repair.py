"""Tests broken histories after repair: the turns, their order and the notices."""

import msgspec
import pytest

from gateway.core.conversation import Conversation, Image, JsonObject, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.rules import violation
from gateway.history.repair import repair
from gateway.history.repair.results import NO_RESULT
from gateway.history.validate import validate
from gateway.providers.registry import PROFILES
from tests.history.strategies import assistant, calling, conversation, result, system, user

Told = list[tuple[str, str, int | None, str | None]]


def mended(*turns: Turn, policy: Policy | None = None) -> tuple[tuple[Turn, ...], Told]:
    """The repaired turns without index and source, so that they compare with plain ones, and the notices' gist."""
    repaired, notices = repair(conversation(*turns), policy or Policy())
    assert validate(repaired) == ()
    plain = tuple(msgspec.structs.replace(turn, index=None, source=None) for turn in repaired.turns)
    return plain, gist(notices)


def gist(notices: list[Notice]) -> Told:
    assert all(notice.stage == "repair" for notice in notices)
    return [(notice.action, notice.rule, notice.index, notice.tool_call_id) for notice in notices]


def unanswered(call_id: str) -> Turn:
    return Turn("tool", (ToolResult(call_id, (Text(NO_RESULT),), is_error=True, synthesized=True),))


def note(text: str, *more: Image | Text) -> Turn:
    return Turn("user", (Text(text), *more), synthesized=True)


def test_a_missing_answer_is_written_as_an_error_and_marked() -> None:
    turns, told = mended(user(), calling("a"), user("stop"))
    assert turns == (user(), calling("a"), unanswered("a"), user("stop"))
    assert told == [("added", "CALLS_UNANSWERED", 1, "a")]


def test_a_call_at_the_very_end_is_answered() -> None:
    assert mended(user(), calling("a"))[0] == (user(), calling("a"), unanswered("a"))


def test_only_the_missing_part_of_a_batch_is_answered_after_the_rest() -> None:
    turns, told = mended(calling("a", "b", "c"), result("b"), user())
    assert turns == (calling("a", "b", "c"), result("b"), unanswered("a"), unanswered("c"), user())
    assert told == [("added", "CALLS_UNANSWERED", 0, "a"), ("added", "CALLS_UNANSWERED", 0, "c")]


def test_the_turn_that_repair_adds_has_no_place_in_the_clients_request() -> None:
    repaired, _ = repair(conversation(calling("a")), Policy())
    assert repaired.turns[1].index is None
    assert repaired.turns[1].source is None


@pytest.mark.parametrize("between", [user("wait"), system(), assistant("hm"), calling("z")])
def test_a_result_that_stands_apart_moves_to_its_call(between: Turn) -> None:
    turns, told = mended(calling("a"), between, result("a"))
    assert turns[:3] == (calling("a"), result("a"), between)
    assert [one[2:] for one in told if one[0] == "moved"] == [(2, "a")]


def test_a_result_before_its_call_moves_behind_it() -> None:
    turns, told = mended(user(), result("a"), calling("a"), assistant())
    assert turns == (user(), calling("a"), result("a"), assistant())
    assert told == [("moved", "TOOL_ORPHAN", 1, "a")]


def test_interlocked_rounds_are_taken_apart() -> None:
    turns, told = mended(calling("a"), calling("b"), result("a"), result("b"))
    assert turns == (calling("a"), result("a"), calling("b"), result("b"))
    assert told == [("moved", "TOOL_ID_UNKNOWN", 2, "a")]


def test_an_assistant_that_speaks_between_the_results_of_a_batch_follows_them() -> None:
    turns, told = mended(calling("a", "b"), result("a"), assistant(), result("b"))
    assert turns == (calling("a", "b"), result("a"), result("b"), assistant())
    assert told == [("moved", "TOOL_ORPHAN", 3, "b")]


def test_a_turn_that_only_moves_keeps_its_source() -> None:
    given = conversation(calling("a"), user(), result("a"))
    repaired, _ = repair(given, Policy())
    assert repaired.turns == (given.turns[0], given.turns[2], given.turns[1])
    assert all(turn.source is not None for turn in repaired.turns)


def test_a_second_answer_is_dropped_and_said_to_be() -> None:
    turns, told = mended(calling("a"), result("a", "first"), result("a", "second"), user(), result("a", "third"))
    assert turns == (calling("a"), result("a", "first"), user())
    assert told == [("dropped", "TOOL_ID_DUPLICATE", 2, "a"), ("dropped", "TOOL_ID_DUPLICATE", 4, "a")]


def test_what_is_dropped_is_a_warning() -> None:
    _, notices = repair(conversation(calling("a"), result("a"), result("a")), Policy())
    assert [notice.level for notice in notices] == ["warning"]


def test_an_orphan_is_kept_as_a_users_note_where_it_stood() -> None:
    turns, told = mended(system(), result("x", "42 files"), user())
    kept = note("[Result of a tool call that is not in this conversation (id x)]\n42 files")
    assert turns == (system(), kept, user())
    assert told == [("changed", "TOOL_ORPHAN", 1, "x")]


def test_an_orphan_is_dropped_with_a_notice_when_the_policy_says_so() -> None:
    turns, told = mended(system(), result("x"), user(), policy=Policy(orphaned_results="drop"))
    assert turns == (system(), user())
    assert told == [("dropped", "TOOL_ORPHAN", 1, "x")]


def test_an_orphan_among_the_answers_follows_them() -> None:
    turns, told = mended(calling("a", "b"), result("a"), result("x"), result("b"), assistant())
    assert [turn.role for turn in turns] == ["assistant", "tool", "tool", "user", "assistant"]
    assert told == [("changed", "TOOL_ID_UNKNOWN", 2, "x")]


def test_results_whose_assistant_lost_its_calls_are_all_kept() -> None:
    turns, told = mended(user(), assistant("I look."), result("a", "one"), result("b", "two"))
    assert [turn.role for turn in turns] == ["user", "assistant", "user", "user"]
    assert [turn.text.splitlines()[1] for turn in turns[2:]] == ["one", "two"]
    assert [one[1] for one in told] == ["TOOL_ORPHAN", "TOOL_ORPHAN"]


def test_a_note_tells_the_name_the_error_and_keeps_what_is_no_text() -> None:
    picture = Image("https://example.org/a.png")
    orphan = Turn("tool", (ToolResult("x", (picture, Text("seen")), is_error=True),), name="look")
    ((kept,), _) = mended(orphan)
    heading = "[Error result of a tool call of look that is not in this conversation (id x)]"
    assert kept == note(heading, picture, Text("seen"))


def test_an_empty_orphan_without_an_id_is_a_note_too() -> None:
    ((kept,), told) = mended(Turn("tool", (ToolResult("", ()),)))
    assert kept == note("[Result of a tool call that is not in this conversation]")
    assert told == [("changed", "TOOL_ID_MISSING", 0, None)]


def test_calls_and_results_without_ids_are_bound_by_position_and_named_by_it() -> None:
    turns, told = mended(user(), calling("", ""), result("", "one"), result("", "two"))
    names = "call_1_0", "call_1_1"
    assert turns == (user(), calling(*names), result(names[0], "one"), result(names[1], "two"))
    assert told == [
        ("changed", "CALL_ID_MISSING", 1, names[0]),
        ("changed", "CALL_ID_MISSING", 1, names[1]),
        ("changed", "TOOL_ID_MISSING", 2, names[0]),
        ("changed", "TOOL_ID_MISSING", 3, names[1]),
    ]


def test_a_result_with_a_foreign_id_answers_the_call_without_one() -> None:
    turns, told = mended(calling(""), result("x"))
    assert turns == (calling("call_0_0"), result("call_0_0"))
    assert told == [("changed", "CALL_ID_MISSING", 0, "call_0_0"), ("changed", "TOOL_ID_UNKNOWN", 1, "call_0_0")]


def test_the_same_id_in_every_round_is_numbered_in_call_and_result() -> None:
    rounds = [turn for text in ("one", "two", "three") for turn in (calling("call_1"), result("call_1", text))]
    turns, told = mended(*rounds)
    assert turns[:2] == (calling("call_1"), result("call_1", "one"))
    assert turns[2:4] == (calling("call_1_2"), result("call_1_2", "two"))
    assert turns[4:] == (calling("call_1_3"), result("call_1_3", "three"))
    assert told == [("changed", "CALL_ID_DUPLICATE", 2, "call_1_2"), ("changed", "CALL_ID_DUPLICATE", 4, "call_1_3")]


def test_an_id_that_the_provider_reads_is_not_numbered() -> None:
    again = calling("f:0"), result("f:0")
    kimi = Policy(profile=PROFILES["kimi-thinking"])
    asked = conversation(*again, *again)
    assert repair(asked, kimi) == (asked, [])
    faulty, notices = repair(conversation(calling("f:0", "f:0"), result("f:0"), calling(""), *again), kimi)
    assert [call.id for turn in faulty.turns for call in turn.calls] == ["f:0", "f:0", "call_2_0", "f:0"]
    assert gist(notices) == [
        ("added", "CALLS_UNANSWERED", 0, "f:0"),
        ("changed", "CALL_ID_MISSING", 2, "call_2_0"),
        ("added", "CALLS_UNANSWERED", 2, "call_2_0"),
    ]


def test_an_id_twice_in_one_message_is_numbered_and_its_results_bind_in_order() -> None:
    turns, _ = mended(calling("a", "a"), result("a", "one"), result("a", "two"))
    assert turns == (calling("a", "a_2"), result("a", "one"), result("a_2", "two"))


def test_a_derived_id_is_never_one_that_an_earlier_call_has() -> None:
    turns, _ = mended(calling("a", "a_2"), result("a"), result("a_2"), calling("a"), result("a"))
    assert turns[3:] == (calling("a_3"), result("a_3"))


def test_an_orphan_is_not_bound_by_an_id_that_repair_derives() -> None:
    turns, _ = mended(calling("a"), result("a"), calling("a"), result("a", "mine"), result("a_2", "foreign"))
    assert turns[3] == result("a_2", "mine")
    assert turns[4].role == "user"
    assert turns[4].text.endswith("foreign")


def test_derived_ids_stay_within_the_shortest_known_limit() -> None:
    long = "x" * 40
    turns, _ = mended(calling(long), result(long), calling(long), result(long))
    (call,) = turns[2].calls
    assert call.id == "x" * 34 + "_2"


def test_an_interrupted_call_is_answered_and_its_arguments_stay_broken() -> None:
    call = ToolCall("a", "shell", '{"command": "rm -rf /tmp/x')
    turns, _ = mended(user(), Turn("assistant", (Text("Cleaning"), call)), user("stop!"))
    assert turns[1].calls == (call,)
    assert turns[2] == unanswered("a")


def test_unknown_fields_of_a_call_survive_a_new_id() -> None:
    signature: JsonObject = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    signed = Turn("assistant", (Reasoning("hm"), ToolCall("a", "read", "{}", signature)), extra={"cache": True})
    turns, _ = mended(signed, result("a"), signed, result("a"))
    assert turns[2] == Turn(
        "assistant", (Reasoning("hm"), ToolCall("a_2", "read", "{}", signature)), extra={"cache": True}
    )


def test_empty_assistant_turns_stay_where_they_are() -> None:
    silent = Turn("assistant", ())
    turns, told = mended(user(), silent, calling("a"), silent, result("a"))
    assert turns == (user(), silent, calling("a"), result("a"), silent)
    assert told == [("moved", "TOOL_ORPHAN", 4, "a")]


def test_every_fault_that_the_dialect_mended_becomes_a_notice_and_its_turn_loses_the_source() -> None:
    given = conversation(user(), user(), user())
    faults = (
        violation("TOOLS_NAME", -1, param="tools[0].function.name"),
        violation("CONTENT_TYPE", 1, param="messages[1].content", detail="content is a number"),
    )
    repaired, notices = repair(msgspec.structs.replace(given, faults=faults), Policy())
    assert gist(notices) == [("seen", "TOOLS_NAME", None, None), ("changed", "CONTENT_TYPE", 1, None)]
    assert notices[1].detail == "content is a number"
    assert [turn.source is None for turn in repaired.turns] == [False, True, False]
    assert repaired.faults == ()


def test_a_missing_id_that_both_the_dialect_and_the_pairing_see_is_told_once() -> None:
    fault = violation("TOOL_ID_MISSING", 1, param="messages[1].tool_call_id")
    given = msgspec.structs.replace(conversation(calling("a"), result("")), faults=(fault,))
    assert gist(repair(given, Policy())[1]) == [("changed", "TOOL_ID_MISSING", 1, "a")]


def test_a_fault_that_the_dialect_settled_alone_is_told_although_the_pairing_is_sound() -> None:
    fault = violation("CALL_ARGS_TYPE", 0, param="messages[0].tool_calls[0].function.arguments", tool_call_id="a")
    given = msgspec.structs.replace(conversation(calling("a"), result("a")), faults=(fault,))
    assert gist(repair(given, Policy())[1]) == [("changed", "CALL_ARGS_TYPE", 0, "a")]


def test_notices_come_in_the_order_of_the_messages() -> None:
    _, told = mended(result("x"), calling("a"), result("y"), calling("a"), user())
    assert [one[2] for one in told] == sorted(one[2] or 0 for one in told)


def test_a_tool_turn_with_several_results_is_shared_out() -> None:
    both = Turn("tool", (ToolResult("a", (Text("one"),)), ToolResult("b", (Text("two"),))))
    assert mended(calling("a"), both, calling("b"))[0] == (
        calling("a"),
        result("a", "one"),
        calling("b"),
        result("b", "two"),
    )
    assert validate(conversation(calling("a", "b"), both)) == ()


def test_without_turns_there_is_nothing_to_mend() -> None:
    empty = Conversation(())
    assert repair(empty, Policy()) == (empty, [])
