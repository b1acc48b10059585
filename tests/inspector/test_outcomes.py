"""What became of a request, in words."""

import pytest

from gateway.inspector.outcomes import OUTCOMES, outcome_of, phase_name
from gateway.inspector.texts import error_codes


def test_the_codes_are_those_of_the_gateway() -> None:
    assert set(OUTCOMES) - set(error_codes()) == {"client_gone"}


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (200, "", "answered"),
        (499, "client_gone", "client left"),
        (200, "upstream_stream_truncated", "answer broke off"),
        (502, "upstream_invalid_event", "answer cannot be read"),
        (400, "a code of the backend", "refused"),
        (404, "", "refused"),
        (500, "a code of the backend", "failed"),
    ],
)
def test_an_outcome_is_told_in_words(status: int, code: str, words: str) -> None:
    assert outcome_of(status, code) == words


def test_a_phase_is_told_in_words() -> None:
    assert (phase_name("head"), phase_name("stream"), phase_name("?")) == ("waiting", "answering", "being served")
