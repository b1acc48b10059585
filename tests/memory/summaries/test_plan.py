"""Tests which turns a summary covers."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, ToolSpec, Turn
from gateway.core.tokens import Calibration, estimate_text, estimate_turn
from gateway.history.classify import system_prefix
from gateway.history.groups import groups
from gateway.memory.summaries import plan as plan_module
from gateway.memory.summaries.plan import CompressLimits, NoSummary, SummaryRange, plan_range
from gateway.memory.summaries.summary import SummaryRecord
from gateway.memory.summaries.view import view_tokens
from tests.history.strategies import assistant, calling, numbered, result, system, user
from tests.memory.summaries.records import agent_history, boundaries, chat_history, record_of

LIMITS = CompressLimits(window=40_000)


def plan(
    turns: tuple[Turn, ...],
    limits: CompressLimits = LIMITS,
    calibration: Calibration = Calibration(),  # noqa: B008
    applied: SummaryRecord | None = None,
    tools: tuple[ToolSpec, ...] = (),
) -> SummaryRange | NoSummary:
    sizes = [estimate_turn(turn) for turn in turns]
    return plan_range(Conversation(turns, tools), boundaries(turns), sizes, limits, calibration, applied)


def cover_of(turns: tuple[Turn, ...], limits: CompressLimits = LIMITS, **others: object) -> SummaryRange:
    cover = plan(turns, limits, **others)  # type: ignore[arg-type]
    assert isinstance(cover, SummaryRange), cover
    return cover


def reason_of(turns: tuple[Turn, ...], limits: CompressLimits = LIMITS, **others: object) -> str:
    found = plan(turns, limits, **others)  # type: ignore[arg-type]
    assert isinstance(found, NoSummary), found
    return found.reason


def size(turns: tuple[Turn, ...]) -> int:
    return sum(map(estimate_turn, turns))


def test_a_view_within_the_trigger_needs_nothing() -> None:
    turns = chat_history(20)
    assert plan(turns) == NoSummary("below", size(turns))


def test_the_first_crossing_of_the_trigger_covers_whole_groups_down_to_the_target() -> None:
    rounds = next(n for n in range(200) if size(chat_history(n)) > 0.6 * LIMITS.window)
    assert reason_of(chat_history(rounds - 1)) == "below"
    turns = chat_history(rounds)
    cover = cover_of(turns)
    assert cover.view_before == size(turns) > 24_000
    assert cover.view_after <= 12_000
    assert cover.view_after > 12_000 - 2_000, "no more groups than necessary"
    assert (cover.start, cover.previous, cover.generation, cover.result_limit) == (0, None, 1, None)
    assert turns[1 + cover.boundary.turns].role == "user"


def test_an_agent_loop_is_covered_behind_its_question() -> None:
    turns = agent_history(30, 4_000)
    cover = cover_of(turns)
    behind = 1 + cover.boundary.turns
    assert turns[behind].calls
    assert size(turns[behind:]) >= 0.15 * LIMITS.window
    assert cover.view_after <= 12_000


def test_the_newest_group_and_the_tail_stay() -> None:
    newest = (calling("a"), result("a", "word " * 16_000))
    turns = numbered(*chat_history(40, 2_000), *newest)
    cover = cover_of(turns, CompressLimits(window=60_000, target=0.01))
    assert cover.boundary.turns == len(turns) - 1 - len(newest)
    tail = cover_of(chat_history(40), CompressLimits(window=40_000, target=0.01, tail=0.25))
    assert size(chat_history(40)[1 + tail.boundary.turns :]) >= 10_000


def test_the_cut_moves_to_a_users_turn_that_begins_near(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = [
        turn
        for n in range(10)
        for turn in (
            user(f"Question {n}"),
            calling(f"a{n}"),
            result(f"a{n}", "word " * 1_000),
            calling(f"b{n}"),
            result(f"b{n}", "word " * 1_000),
            calling(f"c{n}"),
            result(f"c{n}", "word " * 80),
        )
    ]
    turns = numbered(system(), *rounds, user("Last"))
    cuts = {
        target: cover_of(turns, CompressLimits(30_000, target=target / 100)).boundary.turns for target in range(20, 50)
    }
    monkeypatch.setattr(plan_module, "USER_TURN_SHARE", 0.0)
    exact = {target: cover_of(turns, CompressLimits(30_000, target=target / 100)).boundary.turns for target in cuts}
    moved = [target for target in cuts if cuts[target] != exact[target]]
    assert {turns[1 + cuts[target]].role for target in moved} == {"user"}
    assert {turns[1 + exact[target]].role for target in moved} == {"assistant"}
    assert max(size(turns[1 : 1 + cuts[n]]) / size(turns[1 : 1 + exact[n]]) for n in moved) <= 1.1
    assert any(turns[1 + cut].role == "assistant" for cut in cuts.values()), "some are too far"


def test_tools_and_system_text_count() -> None:
    turns = chat_history(20)
    assert reason_of(turns) == "below"
    tools = (ToolSpec("f", "word " * 12_000),)
    assert cover_of(turns, tools=tools).view_before > 24_000
    assert view_tokens(Conversation(turns, tools), [1] * len(turns)) == estimate_text(
        "f" + "word " * 12_000 + "{}"
    ) + len(turns)


def test_what_no_summary_can_replace_is_told_with_its_size() -> None:
    found = plan(numbered(system("word " * 25_000), *chat_history(3)[1:]))
    assert isinstance(found, NoSummary)
    assert found.reason == "futile"
    assert found.floor is not None
    assert found.floor > 24_000
    assert reason_of(numbered(system(), user(), calling("a"), result("a", "word " * 30_000))) == "futile"


def test_a_large_round_is_covered_although_less_than_the_tail_stands_behind_it() -> None:
    large = (calling("a", "b", "c"), *(result(name, "word " * 45_000) for name in "abc"))
    behind = [turn for n in range(14) for turn in (calling(f"s{n}"), result(f"s{n}", "word " * 500))]
    turns = numbered(system(), user(), *large, *behind)
    limits = CompressLimits(window=120_000)
    assert size(tuple(behind)) < limits.tail * limits.window
    cover = cover_of(turns, limits)
    assert cover.boundary.turns == 1 + len(large), "right behind the large round"
    assert cover.view_after < limits.trigger * limits.window
    assert cover.result_limit == 4_000


def test_a_cut_that_leaves_the_view_above_the_trigger_is_made_where_it_makes_it_fit_the_window() -> None:
    turns = numbered(system("word " * 25_000), *chat_history(40)[1:])
    cover = cover_of(turns)
    assert cover.view_before > LIMITS.window > cover.view_after > LIMITS.trigger * LIMITS.window
    # The results of the running round may be shortened to a quarter of the window each.
    running = (calling("a", "b"), result("a", "word " * 30_000), result("b", "word " * 30_000))
    assert cover_of(numbered(*chat_history(30), *running)).boundary.turns == len(chat_history(30)) - 1
    three = (calling("a", "b", "c", "d"), *(result(name, "word " * 30_000) for name in "abcd"))
    assert reason_of(numbered(*chat_history(30), *three)) == "futile"


def test_what_the_model_has_not_answered_is_never_covered() -> None:
    round_of = (calling("a"), result("a", "word " * 3_000))
    for behind in ((user("Attached media"),), (user("Attached media"), user("Stop."))):
        turns = numbered(*chat_history(40), *round_of, *behind)
        cover = cover_of(turns, CompressLimits(40_000, target=0.01, tail=0.0, job_window=200_000))
        assert cover.boundary.turns == len(chat_history(40)) - 1


def test_a_turn_with_a_compaction_of_a_provider_is_never_covered() -> None:
    compaction = msgspec.structs.replace(user("opaque"), compaction=True)
    before, behind = chat_history(20)[:-1], chat_history(20)[1:]
    turns = numbered(*before, compaction, *behind)
    cover = cover_of(turns)
    assert cover.boundary.turns == len(before) - 1
    assert reason_of(numbered(system(), compaction, *chat_history(40)[1:])) == "futile"


def test_a_summary_that_saves_little_is_not_worth_it() -> None:
    turns = numbered(system("word " * 17_500), *chat_history(6)[1:])
    assert reason_of(turns, CompressLimits(window=36_000, tail=0.02)) == "small"


def test_the_ratio_of_the_model_moves_every_limit() -> None:
    turns = chat_history(20)
    assert reason_of(turns) == "below"
    assert isinstance(plan(turns, calibration=Calibration(2.0, 5)), SummaryRange)
    assert reason_of(chat_history(40), calibration=Calibration(0.5, 5)) == "below"


def test_the_next_summary_continues_the_one_before() -> None:
    turns = chat_history(60)
    first = record_of(turns, 40)
    cover = cover_of(turns, applied=first)
    assert (cover.start, cover.previous, cover.generation) == (40, first, 2)
    assert cover.boundary.turns > 40
    assert cover.view_before == view_tokens(Conversation(turns), [estimate_turn(turn) for turn in turns], first)


def test_a_summary_that_applies_keeps_the_view_below_the_trigger() -> None:
    turns = chat_history(40)
    cover = cover_of(turns)
    assert reason_of(turns, applied=record_of(turns, cover.boundary.turns)) == "below"


def test_each_fourth_generation_begins_with_the_turns_themselves() -> None:
    turns = chat_history(60)
    cover = cover_of(
        turns, applied=record_of(turns, 40, generation=3), limits=msgspec.structs.replace(LIMITS, job_window=200_000)
    )
    assert (cover.start, cover.previous, cover.generation) == (0, None, 4)


def test_a_fourth_generation_whose_originals_do_not_fit_continues() -> None:
    turns = chat_history(220)
    third = record_of(turns, 340, generation=3)
    cover = cover_of(turns, applied=third)
    assert (cover.start, cover.previous, cover.generation) == (340, third, 4)


def test_an_input_that_is_too_large_has_its_results_shortened_first() -> None:
    turns = agent_history(24, 4_000)
    whole = cover_of(turns)
    small = cover_of(turns, CompressLimits(window=40_000, job_window=16_000))
    assert (whole.result_limit, small.result_limit) == (None, 1_000)
    assert small.boundary == whole.boundary


def test_then_fewer_groups_are_covered() -> None:
    turns = chat_history(80)
    whole = cover_of(turns)
    small = cover_of(turns, CompressLimits(window=40_000, job_window=20_000))
    assert 0 < small.boundary.turns < whole.boundary.turns


def test_a_window_too_small_for_any_worthwhile_input_is_told() -> None:
    assert reason_of(chat_history(80), CompressLimits(window=40_000, job_window=3_000)) == "input"


def test_the_answer_has_room_for_prose_and_for_what_is_thought_before() -> None:
    assert cover_of(chat_history(40)).output_tokens == 2_000 + 4_000
    small = cover_of(chat_history(10), CompressLimits(window=12_000))
    assert small.output_tokens == 1_500 + 1_500
    assert cover_of(chat_history(40), CompressLimits(window=40_000, job_window=24_000)).output_tokens == 2_000 + 3_000


def test_a_text_is_refused_from_half_more_than_expected_or_where_it_gains_too_little() -> None:
    cover = cover_of(chat_history(40))
    expected = cover.view_after - size(chat_history(40)[1 + cover.boundary.turns :]) - size(chat_history(40)[:1])
    assert cover.summary_limit == pytest.approx(1.5 * expected, abs=2)
    close = cover_of(chat_history(40), CompressLimits(window=40_000, least_gain=0.49))
    assert close.summary_limit < 1.2 * expected
    assert close.view_before - close.view_after >= 0.49 * 40_000 - 2


@st.composite
def histories(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Rounds of one shape each, whose texts differ in size."""
    turns = [system("s" * draw(st.integers(0, 400)))]
    for number in range(draw(st.integers(1, 14))):
        text = "word " * draw(st.integers(1, 600))
        kind = draw(st.sampled_from("ucn"))
        if kind == "u":
            turns += [user(text), assistant("Yes.")]
        elif kind == "c":
            turns += [calling(f"c{number}", f"d{number}"), result(f"c{number}", text), result(f"d{number}")]
        else:
            turns.append(assistant(text))
    return numbered(*turns, user("Last"))


@given(
    histories(),
    st.builds(
        CompressLimits,
        window=st.integers(500, 9_000),
        target=st.sampled_from([0.1, 0.3]),
        least_gain=st.sampled_from([0.0, 0.15]),
        job_window=st.none() | st.integers(1_000, 9_000),
    ),
    st.sampled_from([0.5, 1.0, 3.0]),
)
@settings(max_examples=80)
def test_law_a_cover_is_legal_worthwhile_and_the_same_each_time(
    turns: tuple[Turn, ...], limits: CompressLimits, ratio: float
) -> None:
    calibration = Calibration(ratio, 3)
    cover = plan(turns, limits, calibration)
    assert plan(turns, limits, calibration) == cover
    if isinstance(cover, NoSummary):
        return
    start = system_prefix(turns)
    ends = {group.stop - start for group in groups(turns)}
    assert cover.boundary.turns in ends
    assert cover.boundary.turns <= groups(turns)[-1].start - start, "the newest group stays"
    assert cover.view_before > limits.trigger * limits.window - 1
    assert cover.view_before - cover.view_after >= limits.least_gain * limits.window - 2
    assert cover.view_after <= cover.view_before
