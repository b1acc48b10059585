"""Law: a damaged recording is an answer in order or one error of the contract, the same however its bytes are cut."""

import base64
import re
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from adapters.openai.client_errors import error_object
from adapters.warp.backend.decode.frames import FrameReader
from adapters.warp.backend.decode.output import Output
from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.core.errors import BackendProtocolError
from gateway.core.notices import Notice
from gateway.framing.ndjson import NDJSONDecoder
from gateway.framing.sse import SSEDecoder
from gateway.protobuf.utf8_repair import repair_texts
from gateway.testing.events import content
from gateway.testing.golden import Golden
from gateway.testing.golden_runner import ScenarioResult, play
from gateway.testing.strategies import damaged, pieces
from tests.fuzz.recorded import PRESETS, answers, any_wires, flipped

LIMIT: Final = 300
# The end of a complete stream of each dialect; an incomplete one has it nowhere.
ENDS: Final = {
    "openai_chat": re.compile(rb"data: \[DONE\]\n\n"),
    "openai_completions": re.compile(rb"data: \[DONE\]\n\n"),
    "openai_responses": re.compile(rb"event: response\.(completed|incomplete)\ndata: .+\n\n"),
    "anthropic_messages": re.compile(rb"event: message_stop\ndata: .+\n\n"),
    "ollama": re.compile(rb'"done":true.*\n'),
    # A blocked prompt has no candidate, and so no finish reason.
    "gemini": re.compile(rb'"(finishReason|blockReason)":.+\s+'),
    "gemini_interactions": re.compile(rb"event: interaction\.completed\ndata: .+\n\nevent: done\ndata: \[DONE\]\n\n"),
}
PAYLOADS: Final = tuple(
    base64.urlsafe_b64decode(frame.partition(b"data:")[2])
    for wire in PRESETS["adapters.warp.backend:WarpAdapter"]
    for frame in wire.split(b"\n\n")
    if frame.startswith(b"event:data\ndata:")
)


@given(golden=answers(), data=st.data())
def test_any_damaged_answer_is_told_alike_however_it_is_cut(golden: Golden, data: st.DataObject) -> None:
    end = ENDS[golden.scenario.dialect]
    whole = play(golden, [golden.wire])
    other = play(golden, data.draw(pieces(golden.wire)))
    if whole.error is None:
        assert other.error is None
        assert content(other.events) == content(whole.events)
        assert _notices(other, golden) == _notices(whole, golden)
        assert other.completion == whole.completion
        ended = end.search(whole.stream)
        assert ended is not None and ended.end() == len(whole.stream)
    else:
        assert other.error is not None
        assert (other.error.status, error_object(other.error)) == (whole.error.status, error_object(whole.error))
        assert content(other.events) == content(whole.events)
        assert not end.search(whole.stream) and not whole.completion


def _notices(outcome: ScenarioResult, golden: Golden) -> list[Notice]:
    """Returns the notices that do not depend on the cut. After the end of an answer no more is read, so a late event is
    reported only if it arrives in the same piece. After a finish reason that does not end the answer, late content is
    reported however it arrives."""
    late = (
        {"LATE_EVENT", "LATE_CONTENT"}
        if golden.scenario.adapter == "adapters.text.backend:TextAdapter"
        else {"LATE_EVENT"}
    )
    return [notice for notice in outcome.notices if notice.rule not in late]


@given(wire=any_wires(), data=st.data())
def test_any_damaged_wire_has_the_same_events_however_it_is_cut(wire: bytes, data: st.DataObject) -> None:
    cutting = data.draw(pieces(wire))
    for kind in (SSEDecoder, NDJSONDecoder):
        assert _decoded(kind(LIMIT), [wire]) == _decoded(kind(LIMIT), cutting)


def _decoded(decoder: SSEDecoder | NDJSONDecoder, cutting: list[bytes]) -> tuple[list[bytes], str | None]:
    events: list[bytes] = []
    try:
        for piece in cutting:
            events += decoder.feed(piece)
        tail = decoder.tail()
    except BackendProtocolError as error:
        return [], error.code
    return [*events, *([] if tail is None else [tail])], None


@given(payload=st.sampled_from(PAYLOADS).flatmap(damaged) | st.sampled_from(PAYLOADS).flatmap(flipped))
def test_any_damaged_payload_is_a_message_or_refused(payload: bytes) -> None:
    try:
        event = FrameReader(1 << 20, False, Output()).read(base64.b64encode(payload))
    except BackendProtocolError as error:
        assert error.status == 502
        return
    if event is None:
        assert not payload
        return
    # What was read is what the runtime reads, but for texts that are no UTF-8.
    mended = repair_texts(payload, ResponseEvent)
    assert event == ResponseEvent.FromString(payload if mended is None else mended)
