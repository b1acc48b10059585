"""The reasoning of an answer and its state, to a client of the dialect and to any other."""

from typing import Final

from gateway.core.events import PassthroughFields, ReasoningDelta, ReasoningEnd
from gateway.core.provider_state import with_provider_state
from tests.adapters.openai_responses.reading import OWN, START, STOP, decoded
from tests.adapters.openai_responses.wires import added, delta, done, reasoning, streamed, whole

STATE: Final = ReasoningEnd(with_provider_state("openai", {"id": "rs_1", "encrypted_content": "e"}))
TWO_PARTS: Final = [
    added(0, reasoning()),
    delta("reasoning_summary_text", 0, "a", summary_index=0),
    delta("reasoning_summary_text", 0, "b", summary_index=1),
    done(0, reasoning(["a", "b"], encrypted_content="e")),
]


def test_parts_of_reasoning_are_told_apart() -> None:
    assert decoded(streamed(*TWO_PARTS)) == [START, ReasoningDelta("a\n\nb"), STATE, STOP]


def test_a_client_of_the_dialect_learns_which_reasoning_it_reads() -> None:
    assert decoded(streamed(*TWO_PARTS), OWN) == [
        START,
        PassthroughFields("delta", {"item_id": "rs_1", "summary_index": 0}),
        ReasoningDelta("a"),
        PassthroughFields("delta", {"summary_index": 1}),
        ReasoningDelta("b"),
        STATE,
        STOP,
    ]
    assert decoded(whole(reasoning(["a", "b"], encrypted_content="e")), OWN) == decoded(streamed(*TWO_PARTS), OWN)
    assert decoded(whole(reasoning((), ["c"])), OWN)[1:3] == [
        PassthroughFields("delta", {"item_id": "rs_1"}),
        ReasoningDelta("c"),
    ]


def test_encrypted_reasoning_needs_no_text() -> None:
    assert decoded(whole(reasoning(encrypted_content="e"))) == [START, STATE, STOP]
    assert decoded(whole(reasoning())) == [START, STOP]
