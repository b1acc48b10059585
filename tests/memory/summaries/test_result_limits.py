"""Tests to which sizes results are shortened where what is sent would exceed the window."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Turn
from gateway.core.tokens import Calibration, estimate_text, estimate_turn, estimate_view
from gateway.memory.summaries.substitution import FULL_SHARE, LEAST_LIMIT, FittedHistory, ResultLimits, applied_to, fit
from gateway.memory.summaries.view import running_round
from tests.history.strategies import assistant, calling, numbered, result, system, user
from tests.memory.summaries.records import record_of

WINDOW = 10_000


def limits_of(*turns: Turn, window: int = WINDOW, ratio: float = 1.0) -> ResultLimits | None:
    return fit(Conversation(numbered(*turns)), window, Calibration(ratio, 5))[1]


def fitted(*turns: Turn, window: int = WINDOW) -> tuple[Turn, ...]:
    conversation = Conversation(numbered(*turns))
    _, limits = fit(conversation, window)
    sent, notices = FittedHistory(None, limits).substitute(conversation)
    assert [notice.rule for notice in notices] == ["TOOL_RESULTS_FITTED"]
    return sent.turns


def sizes(turns: tuple[Turn, ...]) -> list[int]:
    return [estimate_text(one.text) for turn in turns for one in turn.results]


def words(count: int) -> str:
    return "word " * count


def test_what_fits_is_sent_as_it_is() -> None:
    conversation = Conversation(numbered(user(), calling("a"), result("a", words(9_000))))
    assert fit(conversation, WINDOW)[1] is None
    assert FittedHistory(None).substitute(conversation) == (conversation, ())


def test_answered_results_are_shortened_before_those_of_the_running_round() -> None:
    turns = fitted(
        user(), calling("a"), result("a", words(6_000)), calling("b"), result("b", words(900)), calling("c"),
        result("c", words(5_000)),
    )  # fmt: skip
    assert [size <= limit for size, limit in zip(sizes(turns), (2_500, 900, 5_000), strict=True)] == [True] * 3
    assert sizes(turns)[1:] == [900, 5_000]


def test_the_limit_of_answered_results_is_halved_until_it_fits_and_changes_rarely() -> None:
    found = set()
    for rounds in range(5, 40):
        turns = [user()]
        for number in range(rounds):
            turns += [calling(f"c{number}"), result(f"c{number}", words(2_000))]
        limits = limits_of(*turns)
        assert limits is not None and limits.running is None
        found.add(limits.answered)
    assert found == {2_500 // 2**halved for halved in range(1, 5)}


def test_a_result_of_the_running_round_keeps_a_quarter_of_the_window() -> None:
    turns = fitted(user(), calling("a", "b", "c"), *(result(name, words(6_000)) for name in "abc"))
    assert all(2_500 <= size <= 3_100 for size in sizes(turns))
    large = fitted(user(), calling("a", "b"), result("a", words(20_000)), result("b", words(1_000)))
    assert sizes(large)[1] == 1_000 and 7_500 < sizes(large)[0] < 8_100


def test_where_a_quarter_each_does_not_fit_nothing_is_shortened() -> None:
    assert limits_of(user(), calling(*"abcd"), *(result(name, words(6_000)) for name in "abcd")) is None
    assert limits_of(user(words(12_000)), calling("a"), result("a", words(500))) is None


def test_limits_are_estimates_and_the_window_is_the_models() -> None:
    turns = (user(), calling("a"), result("a", words(6_000)))
    assert limits_of(*turns) is None
    limits = limits_of(*turns, ratio=2.0)
    assert limits is not None and limits.view > 12_000 and limits.sent <= 5_000


def test_what_a_summary_covers_is_neither_measured_nor_shortened() -> None:
    turns = numbered(
        system(), user(), assistant(), user(), calling("a"), result("a", words(60_000)), calling("b"),
        result("b", words(9_500)),
    )  # fmt: skip
    record = record_of(turns, 5)
    measured, limits = fit(Conversation(turns), WINDOW, applied=record)
    assert [n for n, size in enumerate(measured) if not size] == [1, 2, 4, 5]
    assert limits is not None and limits.sent <= FULL_SHARE * WINDOW
    sent, notices = FittedHistory(applied_to(Conversation(turns), record), limits).substitute(Conversation(turns))
    assert [notice.rule for notice in notices] == ["HISTORY_SUMMARIZED", "TOOL_RESULTS_FITTED"]
    assert estimate_view(sent) <= WINDOW and notices[1].index == 7


def test_the_notice_tells_which_results_and_how_much() -> None:
    conversation = Conversation(numbered(user(), calling("a"), result("a", words(20_000))))
    sent, (notice,) = FittedHistory(None, fit(conversation, WINDOW)[1]).substitute(conversation)
    after = len(sent.turns[2].results[0].text)
    assert f"messages 2 to 2 are sent shortened (100000 characters of 1 as {after}): " in notice.detail
    assert "about 20023 tokens, the model's window has 10000" in notice.detail
    assert (notice.stage, notice.action, notice.level) == ("state", "shortened", "warning")


@st.composite
def histories(draw: st.DrawFn) -> tuple[Turn, ...]:
    turns = [system(), user(words(draw(st.integers(1, 400))))]
    for number in range(draw(st.integers(1, 8))):
        names = [f"c{number}_{count}" for count in range(draw(st.integers(1, 3)))]
        text = draw(st.sampled_from(["word ", "a1b2c3d4e5", "行", "\n", "😀", '{"k": 17}, ']))
        turns += [calling(*names), *(result(name, text * draw(st.integers(1, 9_000))) for name in names)]
    return numbered(*turns, *draw(st.sampled_from([(), (user("And now?"),), (assistant(), user("And now?"))])))


@given(histories(), st.integers(2_000, 40_000), st.sampled_from([0.5, 1.0, 2.5]))
@settings(max_examples=60, deadline=None)
def test_law_what_is_sent_fits_or_is_as_the_client_wrote_it(turns: tuple[Turn, ...], window: int, ratio: float) -> None:
    conversation, calibration = Conversation(turns), Calibration(ratio, 5)
    measured, limits = fit(conversation, window, calibration)
    assert measured == [estimate_turn(turn) for turn in turns]
    sent, _ = FittedHistory(None, limits).substitute(conversation)
    if limits is None:
        assert sent == conversation
        return
    assert calibration.tokens(estimate_view(sent)) <= window
    begins = running_round(turns)
    for before, after in zip(turns, sent.turns, strict=True):
        assert before is after or before.role == "tool"
    if sent.turns[begins:] != turns[begins:]:
        assert max(sizes(sent.turns[:begins]), default=0) <= max(2 * LEAST_LIMIT, window // 4)
