"""The reasoning of an answer and its state, to a client of the dialect and to any other."""

from typing import Final

from gateway.core.events import Event, PassthroughFields, ReasoningDelta, ReasoningEnd
from gateway.core.provider_state import with_provider_state
from tests.adapters.openai_responses.backend.reading import OWN, START, STOP, decoded
from tests.adapters.openai_responses.backend.wires import added, delta, done, reasoning, streamed, whole

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
    summaries = [
        ("response.output_item.added", None),
        ("response.reasoning_summary_part.added", 0),
        ReasoningDelta("a"),
        ("response.reasoning_summary_part.added", 1),
        ReasoningDelta("b"),
        ("response.output_item.done", None),
        STATE,
    ]
    for wire in (streamed(*TWO_PARTS), whole(reasoning(["a", "b"], encrypted_content="e"))):
        assert list(map(named, decoded(wire, OWN))) == [START, *summaries, STOP]
    assert list(map(named, decoded(whole(reasoning((), ["c"])), OWN)))[1:4] == [
        ("response.output_item.added", None),
        ("response.content_part.added", None),
        ReasoningDelta("c"),
    ]


def named(event: Event) -> object:
    """An event, of one of the backend's own its type and the summary that it is about."""
    if not isinstance(event, PassthroughFields):
        return event
    return event.fields["type"], event.fields.get("summary_index")


def test_encrypted_reasoning_needs_no_text() -> None:
    assert decoded(whole(reasoning(encrypted_content="e"))) == [START, STATE, STOP]
    assert decoded(whole(reasoning())) == [START, STOP]
