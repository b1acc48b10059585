"""The table of a stream's states matches the encoder: it takes every transition, and no other."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_chat.client import stream
from adapters.openai_chat.client.stream import ChatStreamEncoder
from gateway.core.errors import BackendTruncated
from gateway.core.events import Event, Finish, PassthroughFields, ResponseStart, TextDelta, UsageReport
from gateway.dialects.stream_state import STREAM_TRANSITIONS, StreamInput, StreamState
from gateway.testing.strategies import answers
from tests.transitions import arrows, followed, record

BEGUN: Final[list[Event]] = [ResponseStart(), TextDelta("a")]
FAULT: Final = BackendTruncated("cut")
LATE: Final = PassthroughFields("choice", {"late": 1})

# The events of an answer, and whether it fails; the inputs that they are.
STEPS: Final[dict[str, tuple[list[Event], bool, tuple[StreamInput, ...]]]] = {
    "nothing": ([], False, ("end",)),
    "a failure before the first chunk": ([ResponseStart()], True, ("end",)),
    "a failure within the answer": (BEGUN, True, ("write", "end")),
    "an answer": ([*BEGUN, Finish("stop")], False, ("write", "write", "finish", "end")),
    "an empty answer": ([ResponseStart(), Finish("stop")], False, ("write", "finish", "end")),
    "usage behind the finish": (
        [*BEGUN, Finish("stop"), UsageReport(1, 2)],
        False,
        ("write", "write", "finish", "end"),
    ),
    "fields behind the finish": ([*BEGUN, Finish("stop"), LATE], False, ("write", "write", "finish", "write", "end")),
}


def inputs(events: list[Event], *, fails: bool) -> list[str]:
    with pytest.MonkeyPatch.context() as patched:
        seen = record(patched, "STREAM_TRANSITIONS", stream)
        encoder = ChatStreamEncoder("id", 7, "m")
        encoder.feed(events)
        if fails:
            encoder.fail(FAULT)
        # The end of an answer that has failed is no further input.
        encoder.close()
    return seen


@pytest.mark.parametrize("name", STEPS)
def test_the_events_of_an_answer_are_the_inputs_of_its_encoder(name: str) -> None:
    events, fails, expected = STEPS[name]
    assert inputs(events, fails=fails) == list(expected)


def test_these_answers_take_every_arrow_of_the_table() -> None:
    taken = [followed(STREAM_TRANSITIONS, StreamState.NEW, expected) for _, _, expected in STEPS.values()]
    assert set().union(*taken) == arrows(STREAM_TRANSITIONS)


@given(answers(), st.integers(0, 40), st.booleans())
def test_any_answer_that_stops_anywhere_ends_once(events: list[Event], at: int, fails: bool) -> None:
    seen = inputs(events[:at], fails=fails)
    assert seen.count("end") == 1 and seen[-1] == "end"
    assert seen.count("finish") == sum(type(event) is Finish for event in events[:at])
