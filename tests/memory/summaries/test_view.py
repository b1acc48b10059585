"""Tests which turns follow a summary once more, and where the running round begins."""

import pytest

from gateway.core.conversation import Turn
from gateway.memory.summaries.view import repeated_turns, running_round
from tests.history.strategies import assistant, calling, result, system, user

ROUND = (calling("a"), result("a"))


def test_what_is_covered_of_the_opener_and_the_newest_words_is_repeated() -> None:
    turns = (system(), user(), *ROUND, user("media"), *ROUND, *ROUND)
    assert repeated_turns(turns, 0) == ()
    assert repeated_turns(turns, 4) == (1,)
    assert repeated_turns(turns, len(turns)) == (1, 4)
    assert repeated_turns((user(), *ROUND), 3) == (0,)


@pytest.mark.parametrize(
    ("turns", "begins"),
    [
        ((user(), *ROUND), 1),
        ((user(), *ROUND, *ROUND), 3),
        ((user(), *ROUND, user("media")), 1),
        ((user(), *ROUND, assistant()), 3),
        ((user(), *ROUND, assistant(), system("Be kind.")), 3),
        ((user(), *ROUND, assistant(), user(), user()), 4),
        ((user(),), 0),
        ((), 0),
    ],
)
def test_the_running_round_is_what_the_model_has_not_answered(turns: tuple[Turn, ...], begins: int) -> None:
    assert running_round(turns) == begins
