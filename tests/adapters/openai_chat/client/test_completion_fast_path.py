from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_chat.client.completion import encode_completion
from adapters.openai_chat.client.completion_fast_path import encode_plain
from gateway.core.answer import read_answer
from gateway.core.conversation import JsonObject
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ResponseStart,
    Scope,
    TextDelta,
    UsageReport,
)
from gateway.core.notices import Notice

START = ResponseStart("c1", "m")
FINISH = Finish("stop", "stop")
COUNTED = UsageReport(3, 4, 7, extra={"prompt_tokens_details": {"cached_tokens": 0}})

TEXTS = st.text(min_size=1, max_size=5)
SCOPES: st.SearchStrategy[Scope] = st.sampled_from(["response", "delta", "choice"])
COUNTS = st.none() | st.integers(0, 9)
FIELDS: st.SearchStrategy[JsonObject] = st.dictionaries(
    st.sampled_from(["system_fingerprint", "annotations", "content", "refusal", "usage", "id"]),
    st.none() | st.booleans() | st.integers() | TEXTS | st.lists(TEXTS, max_size=2),
    max_size=2,
)


def _with_a_text(some: list[Event]) -> st.SearchStrategy[list[Event]]:
    usual: list[Event] = [TextDelta("a"), FINISH, COUNTED]
    events: list[Event] = [*some, *usual]
    return st.permutations(events[-6:])


# The text and the counts are there more often than not, so that many answers are plain.
ONE: st.SearchStrategy[Event] = (
    TEXTS.map(TextDelta)
    | st.tuples(COUNTS, COUNTS, COUNTS, st.booleans(), FIELDS).map(lambda report: UsageReport(*report))
    | st.tuples(SCOPES, FIELDS).map(lambda passed: PassthroughFields(*passed))
    | TEXTS.map(ReasoningDelta)
    | st.sampled_from([START, FINISH, COUNTED, Notice("repair", "added", "CALL_ID_ADDED", "x")])
)
EVENTS = st.lists(ONE, max_size=6).flatmap(_with_a_text)


def in_full(events: Sequence[Event]) -> bytes:
    return encode_completion(read_answer(events), "chatcmpl-1", 1, "m")


def test_what_openai_answers_is_plain() -> None:
    events: list[Event] = [
        Notice("repair", "added", "CALL_ID_ADDED", "x"),
        START,
        PassthroughFields("response", {"service_tier": "default", "system_fingerprint": "fp"}),
        PassthroughFields("delta", {"annotations": []}),
        TextDelta("Hé"),
        FINISH,
        COUNTED,
    ]
    plain = encode_plain(events, "chatcmpl-1", 1, "m")
    assert plain is not None and plain == in_full(events)


@given(EVENTS)
def test_every_answer_is_encoded_as_it_is_in_full(events: list[Event]) -> None:
    plain = encode_plain(events, "chatcmpl-1", 1, "m")
    assert plain in (None, in_full(events))
