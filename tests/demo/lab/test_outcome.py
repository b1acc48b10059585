"""The verdict on a run, from what was seen and how the client ended."""

from collections.abc import Sequence
from typing import Final

import pytest

from gateway.demo.lab.event import Demand, LabEvent, everywhere
from gateway.demo.lab.model import ANSWER, CUT_NOTES_WORD
from gateway.demo.lab.outcome import Verdict, judge
from gateway.demo.lab.request import Seen
from gateway.demo.lab.run_client import Ran

STRUCK: Final = Seen("chat", True, own=True, struck=True)
AGAIN: Final = Seen("chat", True, own=True)
BESIDE: Final = Seen("chat", True)
HALF: Final = Seen("chat", True, own=True, rounds=1, results=(f"The word is {CUT_NOTES_WORD}.",))
PART: Final = ANSWER[:40]
REGULAR: Final = f"session 1, no error so far\n{ANSWER}\n"


def event(demand: Demand = "answer") -> LabEvent:
    return LabEvent("it", "what is sent", demand, everywhere("truncated"))


@pytest.mark.parametrize(
    ("seen", "ran", "demand", "expected"),
    [
        ((), Ran(0, ANSWER), "answer", "not met"),
        ((AGAIN,), Ran(0, ANSWER), "answer", "not met"),
        ((STRUCK,), Ran(0, ANSWER), "answer", "survived"),
        ((STRUCK, AGAIN), Ran(0, ANSWER), "answer", "survived"),
        ((STRUCK,), Ran(0, PART), "answer", "accepted"),
        ((STRUCK,), Ran(0, ""), "answer", "accepted"),
        ((STRUCK,), Ran(0, "session 1, no error so far\n"), "answer", "accepted"),
        ((STRUCK,), Ran(0, f"{PART}\nerror: the stream ended"), "answer", "gave up"),
        ((STRUCK,), Ran(1, "Request failed (500)"), "answer", "gave up"),
        ((STRUCK,), Ran(1, "Request failed (401)"), "words", "reported"),
        ((STRUCK,), Ran(1, ANSWER), "answer", "silent"),
        ((STRUCK,), Ran(1, ""), "words", "silent"),
        ((STRUCK,), Ran(1, "400 The demo backend was asked to answer 400."), "words", "reported"),
        ((STRUCK,), Ran(None, ANSWER), "answer", "hung"),
        ((STRUCK, HALF), Ran(0, ANSWER), "answer", "accepted"),
    ],
)
def test_the_verdict(seen: Sequence[Seen], ran: Ran, demand: Demand, expected: Verdict) -> None:
    assert judge(event(demand), seen, ran, REGULAR).verdict == expected


def test_only_requests_for_the_same_answer_count_as_asked_again() -> None:
    later = Seen("chat", True, own=True, rounds=1)
    outcome = judge(event(), (STRUCK, BESIDE, AGAIN, later, AGAIN), Ran(0, ANSWER), REGULAR)
    assert (outcome.again, outcome.shown) == (2, "asked again 2 times, survived")


def test_a_request_beside_the_conversation_is_not_the_one_that_is_counted() -> None:
    """What strikes each time strikes the request for a title, too, which many clients make first."""
    beside = Seen("chat", True, struck=True)
    outcome = judge(event("words"), (beside, STRUCK, beside, STRUCK, STRUCK), Ran(1, "error"), REGULAR)
    assert outcome.again == 2


def test_a_signal_that_ends_a_client_is_named() -> None:
    assert judge(event(), (STRUCK,), Ran(-11, ""), REGULAR).detail == "ended by signal 11"


def test_a_client_that_fails_before_anything_strikes_is_told() -> None:
    outcome = judge(event(), (AGAIN,), Ran(1, "Segmentation fault"), REGULAR)
    assert (outcome.verdict, outcome.detail, outcome.evidence) == (
        "not met",
        "it showed no whole answer, though nothing struck: exit status 1",
        "Segmentation fault",
    )


def test_the_evidence_is_the_last_line_that_says_what_is_wrong() -> None:
    printed = "Traceback (most recent call last):\n  raise it\nAPIError: the model broke down\nbye\n"
    outcome = judge(event(), (STRUCK,), Ran(1, printed), REGULAR)
    assert (outcome.evidence, outcome.detail) == ("APIError: the model broke down", "exit status 1")


def test_no_sequence_for_a_terminal_is_evidence() -> None:
    outcome = judge(event(), (STRUCK,), Ran(1, "\x1b[91m\x1b[1mError: \x1b[0mit \x07broke\x1b]0;title\n"), REGULAR)
    assert outcome.evidence == "Error: it broke]0;title"


def test_a_long_line_of_evidence_is_cut() -> None:
    assert len(judge(event(), (STRUCK,), Ran(1, f"error {'x' * 500}"), REGULAR).evidence) == 160


def test_a_history_that_the_api_refuses_is_told() -> None:
    refused = Seen("chat", True, refused="messages[2] answers no preceding tool call")
    assert "answers no preceding" in judge(event(), (STRUCK, refused), Ran(0, ANSWER), REGULAR).detail


@pytest.mark.parametrize("text", ["", ANSWER], ids=["nothing", "the answer"])
def test_the_answer_itself_is_no_word_of_an_error(text: str) -> None:
    assert judge(event(), (STRUCK,), Ran(0, f"{text[:60]}\n"), "").verdict == "accepted"
