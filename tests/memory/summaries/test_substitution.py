"""Tests what is sent in the place of the covered turns."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Turn
from gateway.core.policy import FlattenOptions, Policy, StyleName
from gateway.history.apply_profile import apply_profile
from gateway.history.classify import classify, system_prefix
from gateway.history.pairing import is_paired
from gateway.history.prepare import prepare
from gateway.history.repair import repair
from gateway.history.transcript.render import flatten
from gateway.history.transcript.sections import sections_of
from gateway.history.transcript.styles import STYLES
from gateway.history.validate import validate
from gateway.memory.summaries.substitution import MISMATCH, applied_to
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.testing.strategies import conversations
from tests.history.strategies import assistant, broken_turns, calling, numbered, result, system, user
from tests.history.transcript.parse import parse
from tests.memory.summaries.records import agent_history, applied, boundaries, chat_history, record_of, system_and

UNLIMITED = Policy(max_history_messages=None, max_tool_results=None)


def test_one_user_turn_stands_behind_the_system_run_for_the_covered_ones() -> None:
    turns = chat_history(3)
    prepared = prepare(Conversation(turns), UNLIMITED, applied(turns, 4))
    sent = prepared.conversation.turns
    assert sent == (turns[0], sent[1], *turns[5:])
    assert (sent[1].role, sent[1].synthesized, sent[1].summary, sent[1].index) == ("user", True, True, None)
    assert sent[1].text == applied(turns, 4).record.text
    (notice,) = prepared.notices
    assert (notice.stage, notice.action, notice.rule, notice.index) == ("state", "changed", "HISTORY_SUMMARIZED", 1)
    assert notice.detail == "messages 1 to 4 are sent as a summary of generation 1, about 40000 tokens as 1500"


def test_words_without_room_are_counted_in_the_notice() -> None:
    turns = chat_history(3)
    summary = applied(turns, 4)
    known = msgspec.structs.replace(summary.record.known, words_left_out=2)
    summary = msgspec.structs.replace(summary, record=msgspec.structs.replace(summary.record, known=known))
    (notice,) = prepare(Conversation(turns), UNLIMITED, summary).notices
    assert notice.detail.endswith("; the words of 2 of these messages had no room in it")


def test_a_covered_question_follows_the_summary_once_more() -> None:
    turns = agent_history(6)
    sent = prepare(Conversation(turns), UNLIMITED, applied(turns, 9)).conversation.turns
    assert sent == (turns[0], sent[1], turns[1], *turns[10:])
    assert sent[1].summary


def test_a_covered_task_follows_the_summary_also_when_a_tool_has_shown_something_since() -> None:
    shown = user("Attached media")
    turns = numbered(system(), user("old"), assistant(), user("x" * 9_000), *_round("a"), shown, *_round("b"))
    prepared = prepare(Conversation(turns), UNLIMITED, applied(turns, 5))
    sent = prepared.conversation.turns
    assert [turn.index for turn in sent] == [0, None, 3, 6, 7, 8]
    assert sent[2] == turns[3]


def _round(call_id: str) -> tuple[Turn, Turn]:
    return calling(call_id), result(call_id)


def test_a_question_behind_the_boundary_is_sent_once() -> None:
    turns = chat_history(3)
    sent = prepare(Conversation(turns), UNLIMITED, applied(turns, 6)).conversation.turns
    assert [turn.text for turn in sent if turn.text == "And now?"] == ["And now?"]
    assert len(sent) == 3


@pytest.mark.parametrize(
    "other",
    [
        lambda turns: (*turns[:3], user("edited"), *turns[4:]),
        lambda turns: turns[2:],
        lambda turns: turns[:5],
        lambda turns: turns[:3],
    ],
    ids=["edited", "shortened by the client", "nothing behind", "shorter"],
)
def test_a_summary_of_other_turns_is_not_used(other: object) -> None:
    assert callable(other)
    turns = chat_history(3)
    changed = other(turns)
    prepared = prepare(Conversation(changed), UNLIMITED, applied(turns, 4))
    assert prepared.conversation.turns == changed
    assert prepared.notices == (MISMATCH,)


def test_a_record_of_a_longer_conversation_is_a_fault_of_the_caller() -> None:
    turns = chat_history(3)
    with pytest.raises(ValueError, match="covers 6 turns, the conversation has 2"):
        applied_to(Conversation(turns[:3]), record_of(turns, 6))


def test_the_summary_counts_for_no_limit_and_is_never_trimmed() -> None:
    turns = chat_history(10)
    policy = Policy(max_history_messages=4, max_tool_results=None, trim_step=1)
    sent = prepare(Conversation(turns), policy, applied(turns, 8)).conversation.turns
    assert sent[1].summary
    assert len(sent) == 1 + 1 + 4 + 1, "system, summary, four messages within the limit, and the question"
    zero = Policy(max_history_messages=0, max_tool_results=0)
    assert [turn.summary for turn in prepare(Conversation(turns), zero, applied(turns, 8)).conversation.turns] == [
        False,
        True,
        False,
    ]


def test_within_the_limit_beside_the_summary_nothing_is_cut() -> None:
    turns = chat_history(4)
    policy = Policy(max_history_messages=4, trim_step=1)
    prepared = prepare(Conversation(turns), policy, applied(turns, 4))
    assert [notice.rule for notice in prepared.notices] == ["HISTORY_SUMMARIZED"]
    assert len(prepared.conversation.turns) == 1 + 1 + 4 + 1


def test_what_a_limit_cuts_beside_a_summary_is_a_warning() -> None:
    turns = chat_history(10)
    policy = Policy(max_history_messages=4, trim_step=1)
    prepared = prepare(Conversation(turns), policy, applied(turns, 8))
    levels = {notice.rule: notice.level for notice in prepared.notices}
    assert levels["HISTORY_LIMITED"] == "warning"
    assert {notice.rule: notice.level for notice in prepare(Conversation(turns), policy).notices}[
        "HISTORY_LIMITED"
    ] == "info"


def test_a_backend_of_one_text_reads_the_summary_under_a_label_of_its_own() -> None:
    turns = chat_history(3, 60)
    sent = prepare(Conversation(turns), UNLIMITED, applied(turns, 4)).conversation
    text = flatten(sent, UNLIMITED).text
    assert "\n\nSummary of earlier turns: [The first 4 turns of this conversation are left out here;" in text


def test_turns_joined_with_a_summary_are_the_users() -> None:
    turns = chat_history(3, 60)
    sent = prepare(Conversation(turns), UNLIMITED, applied(turns, 4)).conversation
    joined = apply_profile(sent, Profile(alternation="strict")).conversation.turns
    assert joined[1].text.endswith("[End of the summary; the conversation goes on.]\nQuestion 2?")
    assert (joined[1].summary, joined[1].synthesized) == (False, False)


def test_a_summary_is_no_question() -> None:
    turns = agent_history(6)
    sent = prepare(Conversation(turns), UNLIMITED, applied(turns, 9)).conversation.turns
    assert classify(sent).last_user == 2
    assert classify(sent).awaiting_continuation


def test_the_loop_guard_and_the_recent_results_see_the_whole_conversation() -> None:
    rounds = [turn for n in range(4) for turn in (calling(f"c{n}"), result(f"c{n}", "same"))]
    turns = numbered(user(), *rounds)
    prepared = prepare(Conversation(turns), UNLIMITED, applied(turns, 7))
    assert [notice.rule for notice in prepared.notices][-2:] == ["LOOP_SEEN", "HISTORY_SUMMARIZED"]


@settings(max_examples=60)
@given(conversations(), st.data())
def test_law_what_is_sent_is_valid_for_every_profile_and_style(given_: Conversation, data: st.DataObject) -> None:
    found = [one.turns for one in boundaries(given_.turns)][:-1]
    if not found:
        return
    covered = data.draw(st.sampled_from(found))
    policy = Policy(
        max_history_messages=data.draw(st.sampled_from([None, 0, 2])),
        max_tool_results=data.draw(st.sampled_from([None, 0, 1])),
        profile=data.draw(st.sampled_from([*PROFILES.values()])),
    )
    prepared = prepare(given_, policy, applied(given_.turns, covered))
    sent = prepared.conversation
    assert validate(sent, policy.profile) == ()
    assert is_paired(sent.turns)
    assert sum(turn.summary for turn in sent.turns) == 1
    profiled = apply_profile(sent, policy.profile).conversation
    assert is_paired(profiled.turns)
    for style in ("labels", "json", "fenced"):
        _read_back(profiled, style)


def _read_back(conversation: Conversation, style: StyleName) -> None:
    policy = Policy(flatten=FlattenOptions(style=style))
    sections = sections_of(conversation.turns, policy, conversation.paths).sections
    read = parse(STYLES[style].render(sections, policy.flatten), policy.flatten)
    without_ids = [(one.speaker, one.text, [(call.name, call.arguments) for call in one.calls]) for one in read]
    assert without_ids == [
        (one.speaker, one.text, [(call.name, call.arguments) for call in one.calls]) for one in sections
    ]


@given(broken_turns(), broken_turns(), st.data())
def test_law_the_covered_turns_are_those_behind_the_digest_or_nothing_is_put_in(
    one: tuple[Turn, ...], other: tuple[Turn, ...], data: st.DataObject
) -> None:
    history = repair(Conversation(one), Policy())[0]
    found = [boundary.turns for boundary in boundaries(history.turns)][:-1]
    if not found:
        return
    covered = data.draw(st.sampled_from(found))
    summary = applied(history.turns, covered)
    fork = (*one[: data.draw(st.integers(0, len(one)))], *other)
    if not fork:
        return
    prepared = prepare(Conversation(numbered(*fork)), UNLIMITED, summary)
    kept = any(turn.summary for turn in prepared.conversation.turns)
    start = system_prefix(prepared.repaired.turns)
    same = prepared.repaired.turns[start : start + covered] == summary.covered
    longer = len(prepared.repaired.turns) > start + covered
    assert kept == (same and longer)
    assert (MISMATCH in prepared.notices) == (not kept)


def test_system_text_that_changes_keeps_the_summary() -> None:
    turns = chat_history(3)
    later = (system("It is Tuesday."), system("Be kind."), *turns[1:])
    _, covered = system_and(turns)
    sent = prepare(Conversation(later), UNLIMITED, applied(turns, 4)).conversation.turns
    assert sent[2].summary
    assert sent[3:] == covered[4:]


def test_a_system_turn_behind_the_beginning_is_no_part_of_the_run() -> None:
    turns = numbered(system(), user("q"), assistant("a"), system("Now be brief."), user("r"), assistant("b"), user("s"))
    sent = prepare(Conversation(turns), UNLIMITED, applied(turns, 2)).conversation.turns
    assert sent[2:] == turns[3:]
