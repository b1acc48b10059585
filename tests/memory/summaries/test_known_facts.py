"""Tests what the gateway tells of the covered turns without a model."""

from collections.abc import Iterator

import msgspec

from gateway.core.conversation import Text, ToolCall, ToolResult, Turn
from gateway.core.tokens import estimate_text
from gateway.memory.summaries.known_facts import MAX_ERROR, known_of, unsaid
from gateway.memory.summaries.summary import CallEntry, Words
from tests.history.strategies import assistant, calling, result, system, user


def test_the_newest_words_that_have_room_are_told_in_order() -> None:
    turns = [assistant(), *_questions()]
    room = 3 * estimate_text("word0 " * 10)
    known = known_of(turns, room, 40)
    assert [words.turn for words in known.words] == [8, 10, 12]
    assert known.words[0] == Words(8, "user", "word3 " * 10)
    assert known.words_left_out == 3
    assert known_of(turns, room - 1, 40).words_left_out == 4
    assert known_of(turns, 10_000, 40).words_left_out == 0


def _questions() -> list[Turn]:
    return [turn for n in range(6) for turn in (user(f"word{n} " * 10), assistant())]


def test_the_task_is_told_before_the_newest_words() -> None:
    known = known_of(_questions(), 3 * estimate_text("word0 " * 10), 40)
    assert [words.turn for words in known.words] == [1, 9, 11] and known.words_left_out == 3


def test_a_task_behind_long_instructions_stays_whole() -> None:
    task = "Port the ledger. " * 20
    turns = [user("Write short functions.\n" * 2_000), user(task), *_questions()[1:]]
    for room in (800, 2_000, 6_000):
        instructions, asked, *others = known_of(turns, room, 40).words
        assert asked.text == task and others
        assert instructions.text.startswith("Write short") and "[elided: " in instructions.text
        assert estimate_text(instructions.text + asked.text) <= room / 2 + 1


def test_what_is_said_before_the_model_speaks_has_half_of_the_room() -> None:
    turns = [*(user(f"example {number} " * 20) for number in range(40)), assistant(), user("And now?")]
    known = known_of(turns, 800, 40)
    assert sum(estimate_text(words.text) for words in known.words) <= 410
    assert [words.turn for words in known.words][-2:] == [40, 42] and known.words_left_out == 41 - len(known.words)


def test_later_system_messages_are_words_and_notes_of_the_gateway_are_not() -> None:
    note = msgspec.structs.replace(user("[Result of a tool call] x"), synthesized=True)
    turns = [user("a"), note, system("Be brief."), Turn("developer", (Text("No jokes."),)), user("  "), assistant()]
    assert known_of(turns, 100, 40).words == (
        Words(1, "user", "a"),
        Words(3, "system", "Be brief."),
        Words(4, "system", "No jokes."),
    )


def test_a_pasted_log_keeps_its_beginning_and_its_end() -> None:
    pasted = "Fix this:\n" + "line of a log\n" * 1_000 + "And never touch the schema."
    first, later = known_of([user(pasted), assistant(), user(pasted), assistant()], 10_000, 40).words
    for words, limit in ((first, 8_000), (later, 2_000)):
        assert limit / 2 < len(words.text) <= limit
        assert words.text.startswith("Fix this:")
        assert words.text.endswith("And never touch the schema.")
        assert "[elided: " in words.text


def test_the_newest_calls_are_told_with_their_outcome_and_size() -> None:
    failed = Turn("tool", (ToolResult("c1", (Text("no such file"),), is_error=True),))
    turns = [user(), calling("c0"), result("c0", "x" * 900), calling("c1"), failed]
    assert known_of(turns, 100, 40).calls == (
        CallEntry(2, "read", '{"n": 0}', False, 900),
        CallEntry(4, "read", '{"n": 0}', True, 12),
    )
    one = known_of(turns, 100, 1)
    assert [call.turn for call in one.calls] == [4]
    assert one.calls_left_out == 1


def test_a_call_is_told_with_the_result_of_its_own_round() -> None:
    turns = [user(), calling("a"), result("a", "first"), calling("a"), result("a", "the second")]
    assert [call.characters for call in known_of(turns, 100, 40).calls] == [5, 10]


def test_long_arguments_are_cut() -> None:
    turns = [user(), Turn("assistant", (ToolCall("a", "write", "x" * 5_000),)), result("a")]
    (call,) = known_of(turns, 100, 40).calls
    assert call.arguments == "x" * 160 + "…"


def test_errors_are_told_once_by_the_line_that_says_so() -> None:
    log = "collected 3 items\nE   assert 1 == 2\nKeyError: 'total'\n1 failed"
    turns = (
        user("Go on. Error: this is no result."),
        calling("a"),
        result("a", log),
        calling("b"),
        result("b", log),
        calling("c"),
        result("c", "def on_error(error):\n    raise ValueError(error)"),
    )
    known = known_of(turns, 1_000, 40)
    assert [(error.turn, error.text) for error in known.errors] == [(3, "KeyError: 'total'")]


def test_a_result_that_is_an_error_is_told_by_its_first_line() -> None:
    turns = (calling("a"), Turn("tool", (ToolResult("a", (Text("\nno such file\nsorry"),), is_error=True),)))
    assert [error.text for error in known_of(turns, 1_000, 40).errors] == ["no such file"]


def test_the_newest_errors_are_told_and_the_others_counted() -> None:
    turns = tuple(
        turn for at in range(9) for turn in (calling(f"c{at}"), result(f"c{at}", f"Error: {at} " + "long " * 90))
    )
    known = known_of(turns, 1_000, 8)
    assert [error.text[:8] for error in known.errors] == ["Error: 7", "Error: 8"] and known.errors_left_out == 7
    assert max(len(error.text) for error in known.errors) == MAX_ERROR + 1


class CountedWords(list[Words]):
    """Words that count how often somebody looks through them."""

    looks = 0

    def __iter__(self) -> Iterator[Words]:
        self.looks += 1
        return super().__iter__()


def test_what_is_known_is_looked_through_once_for_all_turns() -> None:
    known = CountedWords(Words(number, "user", f"Step {number}.") for number in range(3))
    turns = [Turn("user", (Text(f"Step {number}."),)) for number in range(2, 50)]
    assert unsaid(turns, known) == turns[1:]
    assert known.looks == 1
