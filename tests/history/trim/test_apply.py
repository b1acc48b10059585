"""Limits cut between groups, oldest first; the question and the newest group are always kept."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Image, Text, ToolCall, ToolResult, Turn, is_system
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.classify import classify
from gateway.history.groups import groups
from gateway.history.pinned import pinned_turns
from gateway.history.trim.apply import trim
from gateway.history.trim.plan import plan
from gateway.history.trim.truncate import is_elided
from gateway.providers.profile import NEUTRAL, Profile
from tests.history.strategies import (
    assistant,
    broken_turns,
    calling,
    conversation,
    numbered,
    result,
    system,
    user,
    valid_turns,
)


def limits(results: int | None = None, history: int | None = None, step: int = 1, drop: bool = False) -> Policy:
    return Policy(
        max_tool_results=results,
        max_history_messages=history,
        trim_step=step,
        tool_result_overflow="drop" if drop else "elide",
    )


def rounds(count: int, first: int = 0) -> list[Turn]:
    """So many rounds of one call and its result."""
    numbers = range(first, first + count)
    return [turn for n in numbers for turn in (calling(f"c{n}"), result(f"c{n}", f"body {n}"))]


def exchanges(count: int) -> list[Turn]:
    return [turn for n in range(count) for turn in (user(f"q{n}"), assistant(f"a{n}"))]


def kept(trimmed: Conversation) -> list[int | None]:
    return [turn.index for turn in trimmed.turns]


def bodies(trimmed: Conversation) -> list[str]:
    return [result.text for turn in trimmed.turns for result in turn.results]


def lines(notices: list[Notice]) -> list[str]:
    return [notice.detail for notice in notices if notice.detail.startswith("Limiting ")]


def told(notices: list[Notice]) -> list[str]:
    """What is said about pinned turns beyond the limit."""
    return [notice.detail for notice in notices if notice.rule == "USER_TURNS_PINNED"]


def test_nothing_changes_within_the_limits() -> None:
    asked = conversation(system(), *exchanges(3), user("now"), *rounds(2))
    assert trim(asked, Policy()) == (asked, [])
    assert trim(asked, Policy())[0] is asked


def test_none_means_no_limit() -> None:
    asked = conversation(*exchanges(200), user("now"), *rounds(200))
    assert trim(asked, limits(None, None)) == (asked, [])


def test_the_defaults_keep_ten_results_and_fifty_messages() -> None:
    trimmed, notices = trim(conversation(*exchanges(40), user("now"), *rounds(12)), Policy(trim_step=1))
    assert lines(notices) == ["Limiting tool results from 12 to 10", "Limiting history messages from 92 to 51"]
    assert sum(not is_elided(body) for body in bodies(trimmed)) == 10
    assert kept(trimmed)[:2] == [0, 42]
    assert told(notices) == ["1 pinned user message is kept beyond the limit of 50 history messages"]


def test_the_default_step_cuts_further_than_the_limits_demand() -> None:
    trimmed, notices = trim(conversation(*exchanges(40), user("now"), *rounds(12)), Policy())
    assert lines(notices) == ["Limiting tool results from 12 to 7", "Limiting history messages from 92 to 43"]
    assert sum(not is_elided(body) for body in bodies(trimmed)) == 7
    assert kept(trimmed)[:2] == [0, 50]
    assert told(notices) == []


def test_old_results_lose_their_body_but_stay_with_their_call() -> None:
    asked = conversation(user("now"), *rounds(4))
    trimmed, notices = trim(asked, limits(results=2))
    assert kept(trimmed) == kept(asked)
    assert bodies(trimmed) == ["[elided: 6 chars]", "[elided: 6 chars]", "body 2", "body 3"]
    assert lines(notices) == ["Limiting tool results from 4 to 2"]
    assert [turn.source is None for turn in trimmed.turns] == [False, False, True, False, True, *[False] * 4]
    assert [turn.calls for turn in trimmed.turns] == [turn.calls for turn in asked.turns]


def test_an_elided_result_keeps_its_id_and_flags_but_no_image() -> None:
    shot = Turn("tool", (ToolResult("c", (Text("see"), Image("data:x")), is_error=True, synthesized=True),))
    trimmed, _ = trim(conversation(user(), calling("c"), shot, *rounds(1)), limits(results=1))
    assert trimmed.turns[2].results == (ToolResult("c", (Text("[elided: 3 chars]"),), True, True),)


def test_old_results_go_with_their_calls_when_the_policy_drops() -> None:
    asked = conversation(user("old"), *rounds(2), assistant("follow-up"), user("now"), *rounds(2, 2))
    trimmed, notices = trim(asked, limits(results=3, drop=True))
    assert kept(trimmed) == [0, 3, 4, 5, 6, 7, 8, 9, 10]
    assert lines(notices) == ["Limiting tool results from 4 to 3"]
    trimmed, _ = trim(asked, limits(results=2, drop=True))
    assert kept(trimmed) == [0, 6, 7, 8, 9, 10]


def test_results_are_taken_by_whole_groups_and_never_exceed_the_limit() -> None:
    asked = conversation(user(), calling("a", "b", "c"), result("a"), result("b"), result("c"), *rounds(2))
    trimmed, notices = trim(asked, limits(results=4))
    assert [is_elided(body) for body in bodies(trimmed)] == [True, True, True, False, False]
    assert lines(notices) == ["Limiting tool results from 5 to 2"]


def test_the_newest_group_is_never_split_or_elided() -> None:
    batch = [calling(*"abcd"), *(result(call_id) for call_id in "abcd")]
    asked = conversation(user(), *rounds(1), *batch)
    for limit in (0, 2):
        trimmed, notices = trim(asked, limits(results=limit, drop=True))
        assert kept(trimmed) == [0, 3, 4, 5, 6, 7]
        assert lines(notices) == ["Limiting tool results from 5 to 4"]
    assert trim(conversation(user(), *batch), limits(0, 0))[1] == []


def test_zero_keeps_the_newest_group_and_the_pinned_turns_only() -> None:
    trimmed, notices = trim(conversation(system(), *exchanges(2), user("now"), *rounds(3)), limits(0, 0))
    assert kept(trimmed) == [0, 1, 5, 10, 11]
    assert lines(notices) == ["Limiting tool results from 3 to 1", "Limiting history messages from 7 to 2"]


def test_zero_keeps_a_question_that_nothing_follows() -> None:
    trimmed, _ = trim(conversation(system(), *exchanges(2), user("now")), limits(0, 0))
    assert kept(trimmed) == [0, 1, 5]


def test_the_question_survives_a_loop_longer_than_the_limit() -> None:
    trimmed, notices = trim(conversation(user("the question"), *rounds(30)), limits(history=5))
    assert trimmed.turns[0].text == "the question"
    assert len(trimmed.turns) == 1 + 5 * 2
    assert lines(notices) == ["Limiting history messages from 30 to 5"]


def test_the_whole_system_prefix_is_kept_and_a_later_system_turn_is_history() -> None:
    late = conversation(system("a"), Turn("developer", (Text("b"),)), user("q"), system("late"), *exchanges(3))
    assert kept(trim(late, limits(history=3))[0]) == [0, 1, 2, 4, 6, 7, 8, 9]


def test_results_of_the_newest_round_stay_when_a_system_turn_follows_them() -> None:
    asked = conversation(user(), *rounds(2), system("late"))
    assert bodies(trim(asked, limits(0, 0))[0]) == ["body 1"]


def test_a_prefilled_answer_is_the_newest_group() -> None:
    asked = conversation(*exchanges(2), user("now"), assistant("prefill"))
    assert kept(trim(asked, limits(0, 0))[0]) == [0, 4, 5]


def test_a_cut_inside_a_group_keeps_the_whole_group() -> None:
    group = [calling("a", "b"), result("a"), result("b"), assistant("follow-up")]
    asked = conversation(user("first"), assistant(), *group, *exchanges(1), user())
    for limit in (3, 4, 5, 6):
        trimmed, notices = trim(asked, limits(history=limit))
        assert kept(trimmed) == [0, 2, 3, 4, 5, 6, 7, 8]
        assert lines(notices) == ["Limiting history messages from 8 to 7"]
    assert kept(trim(asked, limits(history=2))[0]) == [0, 6, 7, 8]


def test_a_limit_that_only_a_pinned_group_exceeds_says_nothing() -> None:
    assert trim(conversation(user(), calling(*"abc"), *map(result, "abc")), limits(0, 0))[1] == []


def test_without_a_user_turn_the_newest_group_is_pinned() -> None:
    asked = conversation(system(), *rounds(3))
    assert kept(trim(asked, limits(0, 0))[0]) == [0, 5, 6]


@pytest.mark.parametrize("turns", [(), (system(),), (system(), system())])
def test_there_is_nothing_to_trim_without_history(turns: tuple[Turn, ...]) -> None:
    assert trim(conversation(*turns), limits(0, 0)) == (conversation(*turns), [])


def test_counts_are_true_when_both_limits_act() -> None:
    trimmed, notices = trim(conversation(user("now"), *rounds(20)), limits(results=8, history=3))
    assert lines(notices) == ["Limiting tool results from 20 to 3", "Limiting history messages from 20 to 3"]
    assert bodies(trimmed) == ["body 17", "body 18", "body 19"]


def test_a_result_that_is_elided_already_counts_no_more() -> None:
    once, _ = trim(conversation(user("now"), *rounds(5)), limits(results=2))
    grown = msgspec.structs.replace(once, turns=(*once.turns, *numbered(*rounds(1, 9))))
    trimmed, notices = trim(grown, limits(results=2))
    assert lines(notices) == ["Limiting tool results from 3 to 2"]
    assert bodies(trimmed)[:4] == ["[elided: 6 chars]"] * 4


def test_an_elided_result_beside_a_whole_one_keeps_its_count() -> None:
    asked = conversation(user(), calling("a", "b"), result("a", "[elided: 99 chars]"), result("b"), *rounds(1))
    trimmed, notices = trim(asked, limits(results=1))
    assert bodies(trimmed) == ["[elided: 99 chars]", "[elided: 2 chars]", "body 0"]
    assert lines(notices) == ["Limiting tool results from 2 to 1"]


def test_results_are_shortened_before_they_are_counted_out() -> None:
    policy = Policy(max_tool_results=1, max_tool_result_chars=40)
    asked = conversation(user(), calling("a"), result("a", "x" * 100), calling("b"), result("b", "y" * 100))
    trimmed, notices = trim(asked, policy)
    assert [len(body) <= 40 for body in bodies(trimmed)] == [True, True]
    assert [notice.rule for notice in notices][:3] == ["TOOL_RESULT_SHORTENED"] * 2 + ["TOOL_RESULTS_LIMITED"]


def test_which_messages_went_is_told_at_debug_level() -> None:
    _, notices = trim(conversation(*exchanges(3), user("now"), *rounds(3)), limits(results=1, history=2))
    shown = [(n.level, n.rule, n.index, n.detail) for n in notices if n.level == "debug"]
    assert shown == [
        ("debug", "MESSAGES_DROPPED", 1, "messages 1 to 5 were dropped"),
        ("debug", "MESSAGES_DROPPED", 7, "messages 7 to 8 were dropped"),
        ("debug", "TOOL_RESULTS_ELIDED", 10, "the results in messages 10 to 10 were elided"),
    ]


def prefix_breaks(policy: Policy, count: int) -> list[int | None]:
    """Where the prefix broke in each request of a loop that grows by one round a request."""
    found = []
    for length in range(1, count):
        _, notices = trim(conversation(user("now"), *rounds(length)), policy)
        found.append(next((n.index for n in notices if n.rule == "PREFIX_CHANGED"), None))
    return found


@pytest.mark.parametrize("policy", [limits(results=8), limits(history=8), limits(results=8, drop=True)])
def test_with_a_step_the_kept_prefix_breaks_as_rarely_as_possible(policy: Policy) -> None:
    every = [index for index in prefix_breaks(policy, 33) if index is not None]
    rare = [i for i in prefix_breaks(msgspec.structs.replace(policy, trim_step=4), 33) if i is not None]
    assert len(every) == 24
    assert len(rare) == 6


def test_the_prefix_notice_tells_the_truth() -> None:
    """Told exactly when what the last request kept is no longer how this one begins, with the place."""
    for step in (1, 2, 3):
        policy = limits(results=3, history=6, step=step)
        turns = [
            system(),
            *exchanges(3),
            user("now"),
            *rounds(9),
            assistant("done"),
            *exchanges(4),
            user("more"),
            *rounds(8),
        ]
        ends = [n + 1 for n, turn in enumerate(turns) if turn.role in ("user", "tool")]
        before = trim(conversation(*turns[: ends[0]]), policy)[0].turns
        for end in ends[1:]:
            trimmed, notices = trim(conversation(*turns[:end]), policy)
            told = next((notice.index for notice in notices if notice.rule == "PREFIX_CHANGED"), None)
            same = [old == new for old, new in zip(before, trimmed.turns, strict=False)]
            broke = not all(same) or len(trimmed.turns) < len(before)
            assert (told is not None) == broke
            if told is not None:
                assert told == before[same.index(False)].index
            before = trimmed.turns


def test_a_step_keeps_at_least_half_a_limit() -> None:
    trimmed, _ = trim(conversation(user("now"), *rounds(11)), limits(history=10, step=1000))
    assert len(trimmed.turns) == 1 + 2 * 6


def test_the_task_stays_when_a_picture_or_a_word_comes_after_results() -> None:
    told = [user("Attached media"), *rounds(30, 40), user("Stop, do Z."), *rounds(60, 70)]
    asked = conversation(system(), user("AGENTS.md"), user("the task"), *rounds(40), *told)
    trimmed, _ = trim(asked, Policy())
    assert [turn.text for turn in trimmed.turns if turn.role == "user"] == [
        "AGENTS.md",
        "the task",
        "Attached media",
        "Stop, do Z.",
    ]
    zero, _ = trim(asked, limits(0, 0))
    assert [turn.text for turn in zero.turns if turn.role == "user"] == ["AGENTS.md", "the task", "Stop, do Z."]


def reminded(count: int) -> list[Turn]:
    """So many rounds, with words of the user behind the results of each."""
    return [turn for n in range(count) for turn in (*rounds(1, n), user(f"reminder {n}"))]


def test_the_user_turns_of_the_loop_go_behind_its_rounds_up_to_half_of_the_limit() -> None:
    trimmed, notices = trim(conversation(user("the task"), *reminded(9)), limits(history=10))
    spoken = [turn.text for turn in trimmed.turns if turn.role == "user"]
    assert spoken == ["the task", *(f"reminder {n}" for n in range(3, 9))]
    assert lines(notices) == ["Limiting history messages from 27 to 12"]
    assert bodies(trimmed) == ["body 6", "body 7", "body 8"]


def test_pinned_turns_beyond_the_limit_are_told_with_their_number() -> None:
    asked = conversation(
        user("AGENTS.md"), user("the task"), *exchanges(1)[1:], *rounds(4), user("stop"), *rounds(1, 9)
    )
    trimmed, notices = trim(asked, limits(history=5))
    assert kept(trimmed) == [0, 1, 7, 8, 9, 10, 11, 12, 13]
    assert lines(notices) == ["Limiting history messages from 12 to 7"]
    assert told(notices) == ["2 pinned user messages are kept beyond the limit of 5 history messages"]


def test_pinned_turns_alone_may_exceed_the_limit_and_are_told_each_time() -> None:
    asked = conversation(*[user(f"line {n}") for n in range(6)], assistant(), user("now"))
    trimmed, notices = trim(asked, limits(history=4))
    assert trimmed == asked
    assert [(notice.action, notice.level, notice.detail) for notice in notices] == [
        ("seen", "info", "3 pinned user messages are kept beyond the limit of 4 history messages")
    ]


def test_a_long_pinned_turn_keeps_its_beginning_and_end_where_the_limit_would_remove_it() -> None:
    task = "begin " + "x" * 20_000 + " end"
    long = user(task)
    turns = [long, *rounds(4), user(task), *rounds(4, 4)]
    assert trim(conversation(*turns), limits(history=50))[1] == []
    trimmed, notices = trim(conversation(*turns), limits(history=4))
    first, second = (turn.text for turn in trimmed.turns if turn.role == "user")
    assert len(first) == 8_000 and first.startswith("begin x") and first.endswith("x end")
    assert "\n[elided: 12033 chars]\n" in first
    assert second == task
    shown = [(n.action, n.level, n.index, n.detail) for n in notices if n.rule == "USER_TURN_SHORTENED"]
    assert shown == [("shortened", "info", 0, "a pinned user message was shortened from 20010 to 8000 characters")]


def test_a_shortened_turn_of_several_parts_keeps_its_pictures() -> None:
    shown = Turn("user", (Text("a" * 6_000), Image("data:x"), Text("b" * 6_000)))
    trimmed, _ = trim(conversation(shown, *rounds(4), user("stop"), *rounds(4, 4)), limits(history=2))
    text, image = trimmed.turns[0].blocks
    assert isinstance(text, Text) and 7_990 < len(text.text) <= 8_000
    assert text.text.startswith("a") and text.text.endswith("b")
    assert image == Image("data:x")


@pytest.mark.parametrize("step", [1, 10])
def test_the_kept_prefix_breaks_no_more_often_than_the_limit_moves(step: int) -> None:
    """In one loop with words of the user behind each result."""
    policy = limits(history=50, step=step)
    breaks = 0
    for count in range(1, 126):
        _, notices = trim(conversation(user("the task"), *reminded(count)[:-1]), policy)
        breaks += any(notice.rule == "PREFIX_CHANGED" for notice in notices)
    assert breaks <= {1: 125, 10: 50}[step]


POLICIES = st.builds(
    Policy,
    max_tool_results=st.none() | st.integers(0, 6),
    max_history_messages=st.none() | st.integers(0, 8),
    max_tool_result_chars=st.none() | st.just(0),
    trim_step=st.integers(1, 5),
    tool_result_overflow=st.sampled_from(["elide", "drop"]),
    profile=st.sampled_from([NEUTRAL, Profile(first_turn="user")]),
)


@given(broken_turns(), POLICIES)
def test_law_trimming_again_changes_nothing(turns: tuple[Turn, ...], policy: Policy) -> None:
    asked = Conversation(turns)
    before = msgspec.json.encode(asked)
    once, _ = trim(asked, policy)
    again, notices = trim(once, policy)
    assert again == once
    assert {notice.rule for notice in notices} <= {"USER_TURNS_PINNED"}
    assert msgspec.json.encode(asked) == before


@given(valid_turns(), POLICIES)
def test_law_pairs_stay_together_and_order_stays(turns: tuple[Turn, ...], policy: Policy) -> None:
    trimmed, _ = trim(Conversation(turns), policy)
    positions = [turn.index for turn in trimmed.turns if turn.index is not None]
    assert positions == sorted(set(positions))
    for group in groups(turns):
        inside = set(range(group.start, group.stop))
        assert inside <= set(positions) or not inside & set(positions)
    for turn in trimmed.turns:
        assert turn.index is not None
        assert [b for b in turn.blocks if isinstance(b, ToolCall)] == list(turns[turn.index].calls)
        assert (turn.source is None) == (turn != turns[turn.index])


@given(valid_turns(), POLICIES)
def test_law_the_pinned_turns_are_always_there_unchanged(turns: tuple[Turn, ...], policy: Policy) -> None:
    uncut = msgspec.structs.replace(policy, max_tool_result_chars=None)
    trimmed, _ = trim(Conversation(turns), uncut)
    found = classify(turns)
    pinned = [*turns[: found.system_prefix], *(turns[at] for at in pinned_turns(turns).reasons)]
    speaking = [group for group in groups(turns) if not is_system(turns[group.start])]
    pinned += [turn for group in speaking[-1:] for turn in turns[group.start :]]
    assert all(turn in trimmed.turns for turn in pinned)


@given(valid_turns(), POLICIES)
def test_law_limits_hold_beyond_the_newest_group(turns: tuple[Turn, ...], policy: Policy) -> None:
    trimmed, notices = trim(Conversation(turns), policy)
    live = sum(not is_elided(body) for body in bodies(trimmed))
    newest = groups(trimmed.turns)[-1] if trimmed.turns else None
    own = len(newest.results) if newest else 0
    if policy.max_tool_results is not None:
        assert live <= max(policy.max_tool_results, own)
    if policy.max_history_messages is not None:
        widest = max((group.stop - group.start for group in groups(turns)), default=0)
        system_prefix = classify(trimmed.turns).system_prefix
        uncounted = system_prefix + 1 + len(classify(trimmed.turns).results_since)
        pinned = len(pinned_turns(turns).reasons)
        assert len(trimmed.turns) <= uncounted + policy.max_history_messages + pinned + widest
    assert all(line.split(" from ")[1].split(" to ")[0] > "0" for line in lines(notices))


def openings(turns: tuple[Turn, ...]) -> list[int | None]:
    """The first turn behind the system's, where it is the user's."""
    first = [turn for turn in turns if not is_system(turn)][:1]
    return [turn.index for turn in first if turn.role == "user"]


@given(valid_turns(), POLICIES)
def test_law_the_counts_in_the_lines_are_real(turns: tuple[Turn, ...], policy: Policy) -> None:
    uncut = msgspec.structs.replace(policy, max_tool_result_chars=None)
    trimmed, notices = trim(Conversation(turns), uncut)
    for line in lines(notices):
        what, _, counts = line.removeprefix("Limiting ").partition(" from ")
        before, after = map(int, counts.split(" to "))
        if what == "tool results":
            assert before == len(bodies(Conversation(turns)))
            assert after == sum(not is_elided(body) for body in bodies(trimmed))
        else:
            found = classify(turns)
            apart = {*range(found.system_prefix), found.last_user, *found.results_since}
            if policy.profile.first_turn == "user":
                apart.update(openings(turns))
            assert before == len(set(range(len(turns))) - apart)
            beyond = {notice.index for notice in notices if notice.rule == "USER_TURN_KEPT"}
            assert after == len({turn.index for turn in trimmed.turns} - apart - beyond)
        assert after < before


@given(valid_turns(), POLICIES)
def test_law_a_history_that_the_user_begins_still_begins_with_the_user(turns: tuple[Turn, ...], policy: Policy) -> None:
    wanted = msgspec.structs.replace(policy, profile=Profile(first_turn="user"))
    if openings(turns):
        assert openings(trim(Conversation(turns), wanted)[0].turns)


def test_the_user_turn_of_the_oldest_kept_group_stays_where_the_user_must_begin() -> None:
    begun = [assistant("I speak first."), user("old"), *rounds(3), assistant("done")]
    asked = conversation(*begun, user("older"), assistant(), user("now"), *rounds(1, 3))
    free, _ = trim(asked, limits(history=8))
    assert kept(free) == [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    bound = msgspec.structs.replace(limits(history=8), profile=Profile(first_turn="user"))
    trimmed, notices = trim(asked, bound)
    assert kept(trimmed) == [1, *kept(free)]
    assert [(notice.action, notice.index) for notice in notices if notice.rule == "USER_TURN_KEPT"] == [("seen", 1)]


def test_nothing_is_told_where_only_the_users_first_turn_was_to_go() -> None:
    asked = conversation(user("old"), *rounds(1), assistant("done"), user("now"))
    bound = msgspec.structs.replace(limits(history=2), profile=Profile(first_turn="user"))
    assert trim(asked, bound) == (asked, [])


@pytest.mark.full
def test_a_long_history_is_planned_in_linear_time() -> None:
    turns = numbered(*exchanges(5_000), user("now"), *rounds(5_000))
    assert len([fate for fate in plan(turns, Policy()).fates if fate == "drop"]) > 10_000


def test_a_step_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="trim_step must be a whole number of 1 or more; it is 0"):
        Policy(trim_step=0)
