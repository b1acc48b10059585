"""What a request asks: the first words of its newest message, and the tools whose results it brings."""

from collections.abc import Iterator

import pytest

from gateway.core.conversation import Text, ToolCall, ToolResult, Turn
from gateway.inspector.asked import LONGEST, Asked, asked_of
from tests.recording.redact.canaries import CANARIES, core_of


def user(*texts: str) -> Turn:
    return Turn("user", tuple(map(Text, texts)))


def calling(*names: str) -> Turn:
    return Turn("assistant", tuple(ToolCall(f"call_{at}", name, "{}") for at, name in enumerate(names)))


def result(at: int) -> Turn:
    return Turn("tool", (ToolResult(f"call_{at}", (Text("done"),)),))


REMINDER = "<system-reminder>\nYou may use <b>tools</b>.\n</system-reminder>"
ENVIRONMENT = "<environment_context>\n  <cwd>/src</cwd>\n</environment_context>"


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ((), ""),
        ((Turn("system", (Text("You are"),)),), ""),
        ((user("first"), calling(), user("  Fix\n\n the   test ")), "Fix the test"),
        ((user(REMINDER, "Fix it"),), "Fix it"),
        ((user(f"{REMINDER}\n{REMINDER}\nFix it"),), "Fix it"),
        ((user("Fix it", REMINDER),), "Fix it"),
        ((user("Fix it"), user(ENVIRONMENT)), "Fix it"),
        ((user(ENVIRONMENT),), " ".join(ENVIRONMENT.split())),
        ((user("<b>Fix</b>"),), "<b>Fix</b>"),
        ((user("<open> and no end"),), "<open> and no end"),
        ((user("said"), Turn("user", (Text("a note"),), synthesized=True)), "said"),
        ((user(REMINDER + "x" * 1_000_000),), "x" * (LONGEST - 3) + "..."),
        ((user("half \ud800 of"),), "half ? of"),
    ],
)
def test_the_words_are_those_of_the_newest_message(turns: tuple[Turn, ...], words: str) -> None:
    assert asked_of(turns, ()).words == words


def test_the_results_are_those_since_the_models_last_turn() -> None:
    turns = (user("Do"), calling("read", "write"), result(1), result(0))
    assert asked_of(turns, ()) == Asked("Do", ("write", "read"))
    assert asked_of((*turns, calling("bash"), result(0)), ()).results == ("bash",)
    assert asked_of((*turns, Turn("assistant", (Text("Done."),))), ()).results == ()
    assert asked_of((user("Do"), result(0)), ()).results == ()
    assert asked_of((user("Do"), calling("read"), result(7)), ()).results == ()


@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize("before", ["", "Use ", "x " * 70, "x " * 79])
def test_no_part_of_a_secret_is_left_where_the_words_are_cut(canary: str, before: str) -> None:
    secret = CANARIES[canary]
    asked = asked_of((user(f"{before}{secret} and more"), calling(secret), result(0)), ())
    said = " ".join([asked.words, *asked.results])
    assert core_of(secret) not in said and "Canary0" not in said and "CANARY0" not in said


def test_nor_of_a_configured_one() -> None:
    asked = asked_of((user("x" * 150 + " my-own-key-17"), calling("my-own-key-17"), result(0)), ("my-own-key-17",))
    assert "my-own" not in asked.words and "my-own" not in asked.results[0]


@pytest.mark.parametrize("before", [" " * 8170, "Go" + " " * 8168, "<tip>x</tip>" + " " * 8170])
def test_nor_where_white_space_puts_the_end_of_what_is_looked_at_among_them(before: str) -> None:
    asked = asked_of((user(f"{before}word my-own-key-0123456789"),), ("my-own-key-0123456789",))
    assert "my-own" not in asked.words


def test_of_a_long_history_only_the_end_is_looked_at() -> None:
    looked_at: list[int] = []

    class Turns(list[Turn]):
        def __reversed__(self) -> Iterator[Turn]:
            for turn in super().__reversed__():
                looked_at.append(1)
                yield turn

    turns = Turns([user(f"Question {number}") for number in range(1000)])
    assert asked_of(turns, ()).words == "Question 999" and len(looked_at) < 1010
