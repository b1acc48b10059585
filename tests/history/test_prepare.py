"""The pipeline: three modes, the order of the passes, and the notices in that order."""

import msgspec
import pytest

from adapters.openai.client_errors import error_object
from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Conversation, Json, Text, ToolCall, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.policy import LoopGuard, Policy, RecentToolResults
from gateway.core.rules import violation
from gateway.history.prepare import prepare
from tests.field_paths import ITEM_PATHS
from tests.history.strategies import assistant, calling, conversation, numbered, result, system, user

BROKEN = (user(), calling("a", "b"), result("b"), result("x"))


def refusal(given: Conversation, policy: Policy) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        prepare(given, policy)
    return caught.value


def test_a_sound_history_goes_through_as_it_is() -> None:
    given = conversation(system(), user(), calling("a"), result("a"), assistant(), user())
    prepared = prepare(given, Policy())
    assert prepared.conversation == given
    assert prepared.notices == ()
    assert all(mine is theirs for mine, theirs in zip(prepared.conversation.turns, given.turns, strict=True))


def test_strict_mode_refuses_and_says_rule_index_id_path_and_advice() -> None:
    error = refusal(conversation(*BROKEN), Policy(repair="strict"))
    assert (error.status, error.kind, error.param) == (400, "invalid_request", "messages[1].tool_calls")
    assert error.message == (
        "messages[1] (tool call id 'a') breaks the rule CALLS_UNANSWERED: 1 of 2 calls have no tool message directly "
        "after the message: 'a'. Send one tool message for each call; for a skipped call, too, with a text like "
        '"Error: skipped by user". One more violation is listed in `violations`.'
    )


def test_a_history_of_nothing_but_dropped_results_is_refused() -> None:
    error = refusal(conversation(result("lost")), Policy(orphaned_results="drop"))
    assert (error.extra["rule"], error.param) == ("MESSAGES_EMPTY", "messages")
    assert [notice.rule for notice in error.notices] == ["MESSAGES_EMPTY", "TOOL_ORPHAN"]


@pytest.mark.parametrize("mode", ["repair", "off"])
def test_a_request_whose_items_say_nothing_is_refused_with_its_faults(mode: str) -> None:
    fault = violation("CONTENT_MISSING", 0, param="input[0].content")
    given = Conversation((), faults=(fault,), paths=ITEM_PATHS)
    error = refusal(given, msgspec.convert({"repair": mode}, Policy))
    assert error.message.startswith("The request breaks the rule MESSAGES_EMPTY: input holds no message.")
    assert [notice.rule for notice in error.notices] == ["MESSAGES_EMPTY", "CONTENT_MISSING"]


def test_strict_mode_lists_every_violation_as_fields() -> None:
    body = error_object(refusal(conversation(*BROKEN), Policy(repair="strict")))["error"]
    assert isinstance(body, dict)
    assert (body["rule"], body["index"], body["tool_call_id"]) == ("CALLS_UNANSWERED", 1, "a")
    assert body["violation_count"] == 2
    violations = body["violations"]
    assert isinstance(violations, list)
    second = violations[1]
    assert isinstance(second, dict)
    wanted: dict[str, Json] = {"rule": "TOOL_ID_UNKNOWN", "index": 3, "tool_call_id": "x"}
    assert {key: second[key] for key in wanted} == wanted


def test_strict_mode_tells_the_log_what_it_refused() -> None:
    error = refusal(conversation(*BROKEN), Policy(repair="strict"))
    assert [(one.stage, one.action, one.rule, one.index) for one in error.notices] == [
        ("validate", "failed", "CALLS_UNANSWERED", 1),
        ("validate", "failed", "TOOL_ID_UNKNOWN", 3),
    ]


def test_a_refusal_of_many_violations_stays_small() -> None:
    error = refusal(conversation(*(result("x") for _ in range(500))), Policy(repair="strict"))
    body = error_object(error)["error"]
    assert isinstance(body, dict)
    listed = body["violations"]
    assert isinstance(listed, list)
    assert (len(listed), body["violation_count"], len(error.notices)) == (50, 500, 50)
    assert error.message.endswith("499 more violations; the first 49 of them are listed in `violations`.")


def test_strict_mode_refuses_faults_of_shape_too() -> None:
    fault = violation("ROLE_UNKNOWN", 0, param="messages[0].role", detail="the role 'human' is unknown; read as user")
    given = msgspec.structs.replace(conversation(user()), faults=(fault,))
    error = refusal(given, Policy(repair="strict"))
    assert error.param == "messages[0].role"
    assert error.message.startswith("messages[0] breaks the rule ROLE_UNKNOWN: the role 'human' is unknown")


def test_strict_mode_lets_a_sound_history_through() -> None:
    given = conversation(user(), calling("a"), result("a"))
    assert prepare(given, Policy(repair="strict")).conversation == given


def test_off_mode_sends_the_history_as_it_is_and_tells_every_violation() -> None:
    given = conversation(*BROKEN)
    prepared = prepare(given, Policy(repair="off"))
    assert prepared.conversation == given
    told = [(one.stage, one.action, one.rule, one.index) for one in prepared.notices if one.stage == "validate"]
    assert told == [("validate", "seen", "CALLS_UNANSWERED", 1), ("validate", "seen", "TOOL_ID_UNKNOWN", 3)]


@pytest.mark.parametrize("mode", ["repair", "strict", "off"])
def test_a_request_without_messages_cannot_be_mended(mode: str) -> None:
    error = refusal(Conversation(()), msgspec.convert({"repair": mode}, Policy))
    assert error.param == "messages"
    assert error.message.startswith("The request breaks the rule MESSAGES_EMPTY")


@pytest.mark.parametrize("mode", ["repair", "strict", "off"])
@pytest.mark.parametrize(
    ("message", "rule", "param"),
    [
        (None, "NOT_OBJECT", "messages[1]"),
        ("hi", "NOT_OBJECT", "messages[1]"),
        ([], "NOT_OBJECT", "messages[1]"),
        ({"content": "hi"}, "ROLE_TYPE", "messages[1].role"),
        ({"role": None, "content": "hi"}, "ROLE_TYPE", "messages[1].role"),
        ({"role": 7, "content": "hi"}, "ROLE_TYPE", "messages[1].role"),
    ],
)
def test_what_is_no_message_at_all_is_refused_in_every_mode(message: Json, rule: str, param: str, mode: str) -> None:
    body: Json = {"model": "m", "messages": [{"role": "user", "content": "hello"}, message]}
    error = refusal(decode(msgspec.json.encode(body)), msgspec.convert({"repair": mode}, Policy))
    assert (error.status, error.code, error.param) == (400, "invalid_type", param)
    assert (error.extra["rule"], error.extra["index"]) == (rule, 1)


@pytest.mark.parametrize("mode", ["repair", "strict", "off"])
def test_an_array_of_nulls_is_refused_for_the_nulls(mode: str) -> None:
    error = refusal(decode(b'{"model": "m", "messages": [null]}'), msgspec.convert({"repair": mode}, Policy))
    assert (error.extra["rule"], error.extra["index"]) == ("NOT_OBJECT", 0)


def test_an_empty_array_of_messages_is_refused_by_its_rule() -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(b'{"model": "m", "messages": []}')
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "empty_array", "messages")
    assert (caught.value.extra["rule"], caught.value.extra["index"]) == ("MESSAGES_EMPTY", -1)


def test_repair_mode_mends_before_trim_cuts() -> None:
    """Unrepaired, the result at the end belongs to a call that the limit cuts away."""
    old = [turn for n in range(6) for turn in (user(f"q{n}"), assistant(f"a{n}"))]
    given = conversation(*old, calling("a"), user("wait"), result("a"))
    prepared = prepare(given, Policy(max_history_messages=2))
    roles = [turn.role for turn in prepared.conversation.turns]
    assert roles.count("tool") == 1
    assert roles.index("tool") == next(n for n, turn in enumerate(prepared.conversation.turns) if turn.calls) + 1


def test_notices_come_in_the_order_of_the_passes() -> None:
    rounds = [turn for n in range(4) for turn in (calling(f"c{n}"), result(f"c{n}", "same"))]
    given = conversation(user(), result("x"), *rounds)
    policy = Policy(max_tool_results=1, recent_tool_results=RecentToolResults(enabled=True))
    stages = [one.stage for one in prepare(given, policy).notices]
    assert list(dict.fromkeys(stages)) == ["repair", "classify", "guard", "trim"]


def test_each_result_since_the_last_user_turn_has_its_log_line() -> None:
    fresh = (calling("b", "c"), result("b", "配置"), result("c", ""), calling("d"), result("d", "news"))
    given = conversation(user(), calling("a"), result("a", "old"), user(), *fresh)
    told = [one for one in prepare(given, Policy()).notices if one.rule == "TOOL_RESULT_EXTRACTED"]
    assert [(one.index, one.detail) for one in told] == [
        (5, "Extracted tool result: tool_call_id=b, content_len=2"),
        (6, "Extracted tool result: tool_call_id=c, content_len=0"),
        (8, "Extracted tool result: tool_call_id=d, content_len=4"),
    ]


def test_results_of_earlier_rounds_beyond_twenty_have_one_line_together() -> None:
    """An agent sends all of its rounds again in every request, and each result was told when it was new."""
    rounds = [turn for n in range(400) for turn in (calling(f"c{n}"), result(f"c{n}", "text"))]
    told = [one for one in prepare(conversation(user(), *rounds), Policy()).notices if one.stage == "classify"]
    assert [one.tool_call_id for one in told] == [None, *[f"c{n}" for n in range(380, 400)]]
    assert told[0].detail == "Extracted 380 tool results of earlier rounds: content_len=1520"
    assert told[0].index == 2 and {one.level for one in told} == {"debug"}


def test_each_of_many_new_results_has_its_log_line() -> None:
    new = [f"n{n}" for n in range(30)]
    given = conversation(user(), calling("a"), result("a"), calling(*new), *[result(one) for one in new])
    told = [one for one in prepare(given, Policy()).notices if one.stage == "classify"]
    assert [one.tool_call_id for one in told] == [None, *new]
    assert told[0].detail == "Extracted 1 tool result of earlier rounds: content_len=2"


def test_an_id_cannot_forge_a_log_line() -> None:
    given = conversation(user(), calling("a\nb"), result("a\nb"))
    lines = [one.detail for one in prepare(given, Policy()).notices]
    assert lines == ['Extracted tool result: tool_call_id="a\\nb", content_len=2']


@pytest.mark.parametrize("mode", ["repair", "off"])
def test_no_notice_holds_a_line_break(mode: str) -> None:
    foreign = Turn("assistant", (ToolCall("i\n", "n\n", "\n"), ToolCall("i\n", "n\n", "\n"), ToolCall("", "n\n", "\n")))
    given = conversation(foreign, user("\n"), result("i\n", "\n"), result("i\n"), result("x\n"), foreign)
    policy = msgspec.convert({"repair": mode}, Policy)
    told = prepare(given, policy).notices
    assert len(told) > 5
    assert not [one for one in told if "\n" in one.detail]


def test_log_lines_of_results_are_for_debugging_only() -> None:
    given = conversation(user(), calling("a"), result("a"))
    assert {one.level for one in prepare(given, Policy()).notices} == {"debug"}


def test_the_question_of_a_long_loop_is_never_lost() -> None:
    loop = [turn for n in range(60) for turn in (calling(f"c{n}"), result(f"c{n}", f"r{n}"))]
    given = conversation(user("THE QUESTION"), *loop)
    for action in ("notice", "nudge"):
        policy = msgspec.structs.replace(Policy(), loop_guard=msgspec.convert({"action": action}, LoopGuard))
        assert "THE QUESTION" in [turn.text for turn in prepare(given, policy).conversation.turns]


def test_the_question_of_a_loop_whose_calls_were_never_stored_is_not_lost() -> None:
    loop = [turn for n in range(60) for turn in (assistant("I look."), result(f"c{n}", f"r{n}"))]
    turns = prepare(conversation(user("THE QUESTION"), *loop), Policy()).conversation.turns
    assert turns[0].text == "THE QUESTION"
    assert turns[-1].text.endswith("r59")
    assert len(turns) < 60


def test_the_word_that_breaks_a_loop_does_not_take_the_place_of_the_question() -> None:
    loop = [
        turn
        for n in range(60)
        for turn in (Turn("assistant", (msgspec.structs.replace(calling("x").calls[0], id=f"c{n}"),)), result(f"c{n}"))
    ]
    given = Conversation(numbered(user("THE QUESTION"), *loop))
    turns = prepare(given, Policy(loop_guard=LoopGuard(action="nudge"))).conversation.turns
    assert turns[0].text == "THE QUESTION"
    assert turns[-1].role == "user"
    assert "with the same arguments" in turns[-1].text


def test_work_before_the_last_user_turn_stays() -> None:
    given = conversation(user("one"), calling("a"), result("a", "found"), assistant(), user("two"))
    assert prepare(given, Policy()).conversation.turns == given.turns


def test_calls_are_never_taken_off_an_assistant_turn() -> None:
    given = conversation(user(), Turn("assistant", (Text("I look."), *calling("a", "b").blocks)), result("a"))
    assert [call.id for turn in prepare(given, Policy()).conversation.turns for call in turn.calls] == ["a", "b"]
