"""Tests the laws of validate and repair for every history."""

import copy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, File, Image, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.groups import groups
from gateway.history.pairing import is_paired
from gateway.history.prepare import prepare
from gateway.history.repair import repair
from gateway.history.repair.results import NO_RESULT
from gateway.history.validate import pairing_faults, validate
from gateway.providers.profile import Profile
from tests.history.strategies import broken_turns, calling, numbered, result, user, valid_turns

# A provider that reads ids, and one that wants the user to begin.
OWN_RULES = Policy(profile=Profile(reused_ids="keep", first_turn="user"))
POLICIES = st.sampled_from([Policy(), Policy(orphaned_results="drop"), OWN_RULES])


def texts(turns: tuple[Turn, ...]) -> str:
    """All that the turns say, in order."""
    said = []
    for turn in turns:
        for block in turn.blocks:
            match block:
                case Text() | Reasoning():
                    said.append(block.text)
                case ToolCall():
                    said.append(block.name + block.arguments)
                case ToolResult():
                    said.extend(part.text if isinstance(part, Text) else str(part) for part in block.content)
                case Image() | File():
                    said.append(str(block))
    return " ".join(said)


def markers(turns: tuple[Turn, ...]) -> list[str]:
    return re.findall(r"<\d+>", texts(turns))


def dropped(notices: list[Notice]) -> set[int | None]:
    return {notice.index for notice in notices if notice.action == "dropped"}


@given(broken_turns(), POLICIES)
def test_what_repair_returns_is_valid(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, _ = repair(Conversation(turns), policy)
    assert not repaired.turns or validate(repaired, policy.profile) == ()


@given(broken_turns(), POLICIES)
def test_repair_is_idempotent(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, _ = repair(Conversation(turns), policy)
    again, notices = repair(repaired, policy)
    assert again is repaired
    assert notices == []


@given(broken_turns(), POLICIES)
def test_repair_is_deterministic_and_leaves_its_input_alone(turns: tuple[Turn, ...], policy: Policy) -> None:
    before = copy.deepcopy(turns)
    first = repair(Conversation(turns), policy)
    assert turns == before
    assert repair(Conversation(before), policy) == first


@given(valid_turns())
def test_a_valid_history_comes_back_as_it_is(turns: tuple[Turn, ...]) -> None:
    conversation = Conversation(turns)
    repaired, notices = repair(conversation, Policy())
    assert repaired is conversation
    assert notices == []


@given(broken_turns(), POLICIES)
def test_nothing_changes_without_a_notice(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, notices = repair(Conversation(turns), policy)
    assert bool(notices) == (repaired.turns != turns)


@given(broken_turns(), POLICIES)
def test_no_word_is_lost_without_a_notice_that_names_its_message(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, notices = repair(Conversation(turns), policy)
    gone = dropped(notices)
    kept = tuple(turn for turn in turns if turn.index not in gone)
    assert sorted(markers(repaired.turns)) == sorted(markers(kept))


@given(broken_turns())
def test_the_default_policy_drops_nothing_but_second_answers(turns: tuple[Turn, ...]) -> None:
    _, notices = repair(Conversation(turns), Policy())
    assert all(notice.rule == "TOOL_ID_DUPLICATE" for notice in notices if notice.action == "dropped")


@given(broken_turns(), POLICIES)
def test_turns_keep_their_order_except_results(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, _ = repair(Conversation(turns), policy)
    spoken = [turn.index for turn in turns if turn.role != "tool"]
    results = {turn.index for turn in turns if turn.role == "tool"}
    assert [turn.index for turn in repaired.turns if turn.index is not None and turn.index not in results] == spoken


@given(broken_turns(), POLICIES)
def test_a_turn_keeps_its_source_exactly_as_long_as_it_is_unchanged(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, _ = repair(Conversation(turns), policy)
    for turn in repaired.turns:
        original = next((one for one in turns if one.index == turn.index), None)
        assert (turn.source is not None) == (turn == original)


@given(broken_turns(), POLICIES)
def test_only_the_gateways_own_answers_are_marked_as_synthesized(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, notices = repair(Conversation(turns), policy)
    made = [answer for turn in repaired.turns for answer in turn.results if answer.synthesized]
    assert [answer.text for answer in made] == [NO_RESULT] * len(made)
    assert all(answer.is_error for answer in made)
    assert len(made) == sum(notice.action == "added" and notice.rule != "FIRST_TURN_ROLE" for notice in notices)


@given(broken_turns(), POLICIES)
def test_arguments_and_content_are_never_rewritten(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, _ = repair(Conversation(turns), policy)
    was = [(call.name, call.arguments) for turn in turns for call in turn.calls]
    assert [(call.name, call.arguments) for turn in repaired.turns for call in turn.calls] == was


@given(broken_turns(), POLICIES)
def test_each_group_of_a_repaired_history_is_complete(turns: tuple[Turn, ...], policy: Policy) -> None:
    repaired, _ = repair(Conversation(turns), policy)
    for group in groups(repaired.turns):
        answered = [one.call_id for position in group.results for one in repaired.turns[position].results]
        assert sorted(answered) == sorted(group.call_ids)


@given(broken_turns())
def test_every_violation_has_a_place_a_sentence_and_advice(turns: tuple[Turn, ...]) -> None:
    found = validate(Conversation(turns))
    assert [one.index for one in found] == sorted(one.index for one in found)
    assert all(one.detail and one.advice and one.param.startswith("messages") for one in found)


@given(broken_turns() | valid_turns())
def test_the_quick_look_and_the_thorough_one_agree(turns: tuple[Turn, ...]) -> None:
    assert is_paired(turns) == (list(pairing_faults(turns, CANONICAL_PATHS)) == [])


@given(valid_turns(), st.data())
def test_a_history_cut_anywhere_is_mended(turns: tuple[Turn, ...], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(turns)))
    stop = data.draw(st.integers(start, len(turns)))
    repaired, _ = repair(Conversation(turns[start:stop]), Policy())
    assert not repaired.turns or validate(repaired) == ()
    assert markers(repaired.turns) == markers(turns[start:stop])


@given(broken_turns(), st.data())
def test_a_growing_history_keeps_the_ids_it_had(turns: tuple[Turn, ...], data: st.DataObject) -> None:
    stop = data.draw(st.integers(0, len(turns)))
    early, _ = repair(Conversation(turns[:stop]), Policy())
    late, _ = repair(Conversation(turns), Policy())
    was = [call.id for turn in early.turns for call in turn.calls]
    assert [call.id for turn in late.turns for call in turn.calls][: len(was)] == was


@given(broken_turns())
def test_preparing_twice_changes_nothing(turns: tuple[Turn, ...]) -> None:
    policy = Policy(max_history_messages=None, max_tool_results=None)
    if not turns:
        return
    once = prepare(Conversation(turns), policy).conversation
    assert prepare(once, policy).conversation == once


@pytest.mark.full
def test_thousands_of_broken_messages_are_mended() -> None:
    """Every shape that tempts to look around once per message. (What that costs: tests/fuzz/test_work.py.)"""
    size = 4_000
    shapes = {
        "one batch, reversed": (
            calling(*(f"c{n}" for n in range(size))),
            *(result(f"c{n}") for n in range(size, 0, -1)),
        ),
        "one id for all": tuple(turn for _ in range(size // 2) for turn in (calling("a"), result("a"))),
        "one id in one batch": (calling(*["a"] * size), *(result("a") for _ in range(size))),
        "no ids": (calling(*[""] * size), *(result("") for _ in range(size))),
        "orphans": tuple(result(f"x{n}") for n in range(size)),
        "orphans behind a call": (calling("a"), *(result("x") for _ in range(size))),
        "all unanswered": tuple(calling(f"c{n}") for n in range(size)),
        "calls first, results last": (
            *(calling(f"c{n}") for n in range(size // 2)),
            user(),
            *(result(f"c{n}") for n in range(size // 2)),
        ),
        "long ids that share their beginning": tuple(calling("x" * 36 + f"{n % 1000:04}") for n in range(size)),
    }
    for name, turns in shapes.items():
        repaired, notices = repair(Conversation(numbered(*turns)), Policy())
        assert validate(repaired) == (), name
        assert notices, name
