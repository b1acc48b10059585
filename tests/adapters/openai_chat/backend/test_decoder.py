import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.openai_chat.backend.decoder import ChatDecoder
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTimeout, BackendTruncated
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.testing.events import fold
from gateway.testing.replay import cut, cuttings, replay
from tests.adapters.openai_chat.backend.wires import call, chunk, completion, sse, usage

MAX_EVENT = 1 << 16
START = ResponseStart("c1", "m")
HELLO = (chunk({"role": "assistant", "content": "Hello"}), chunk(finish="stop"))


def read(wire: bytes) -> list[Event]:
    return replay(ChatDecoder(MAX_EVENT, 1), [wire])


def rules_of(events: list[Event]) -> list[str]:
    return [event.rule for event in events if isinstance(event, Notice)]


def _with_message(message: Json, finish: str | None = None) -> dict[str, Json]:
    return {**chunk(), "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _with_usage(delta: Json, finish: str | None, usage: Json) -> dict[str, Json]:
    return {**chunk(), "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "usage": usage}]}


MENDED = Notice(
    "backend", "changed", "TEXT_MENDED", "half a character of a text became U+FFFD, or was left out", level="warning"
)
SHAPES: dict[str, tuple[bytes, list[Event]]] = {
    "no [DONE]": (sse(*HELLO, done=False), [START, TextDelta("Hello"), Finish("stop", "stop")]),
    "no blank line after [DONE]": (sse(*HELLO).rstrip(), [START, TextDelta("Hello"), Finish("stop", "stop")]),
    "byte order mark, comments, empty data": (
        b"\xef\xbb\xbf\r\n: hi\n\ndata:\n\n" + sse(*HELLO),
        [START, TextDelta("Hello"), Finish("stop", "stop")],
    ),
    "everything in one chunk": (
        sse(chunk({"content": "a", "reasoning_content": "b"}, "length")),
        [START, ReasoningDelta("b"), TextDelta("a"), Finish("length", "length")],
    ),
    "usage beside the finish": (
        sse(chunk({"content": "a"}, "stop", usage={"total_tokens": 5})),
        [START, TextDelta("a"), Finish("stop", "stop"), UsageReport(total_tokens=5)],
    ),
    "usage after the finish": (
        sse(*HELLO, usage(1, 2)),
        [START, TextDelta("Hello"), Finish("stop", "stop"), UsageReport(1, 2, 3)],
    ),
    "usage in a field of Groq": (
        sse(
            chunk({"content": "a"}),
            chunk({}, "stop", x_groq={"id": "r", "usage": {"prompt_tokens": 1, "total_time": 2}}),
        ),
        [
            START,
            TextDelta("a"),
            PassthroughFields("response", {"x_groq": {"id": "r", "usage": {"prompt_tokens": 1, "total_time": 2}}}),
            Finish("stop", "stop"),
            UsageReport(1, extra={"total_time": 2}),
        ],
    ),
    "usage in a choice, as Kimi sends it": (
        sse(
            _with_usage({"content": "a"}, None, None), _with_usage({}, "stop", {"prompt_tokens": 1, "cached_tokens": 2})
        ),
        [
            START,
            TextDelta("a"),
            PassthroughFields("choice", {"usage": {"prompt_tokens": 1, "cached_tokens": 2}}),
            Finish("stop", "stop"),
            UsageReport(1, extra={"cached_tokens": 2}),
        ],
    ),
    "usage in its own field and in another one": (
        sse(chunk({"content": "a"}, "stop", usage={"prompt_tokens": 3}, x_groq={"usage": {"prompt_tokens": 1}})),
        [
            START,
            PassthroughFields("response", {"x_groq": {"usage": {"prompt_tokens": 1}}}),
            TextDelta("a"),
            Finish("stop", "stop"),
            UsageReport(3),
        ],
    ),
    "usage null in every chunk": (
        sse(chunk({"content": "a"}, usage=None), chunk(finish="stop", usage=None)),
        [START, TextDelta("a"), Finish("stop", "stop")],
    ),
    "details of the usage": (
        sse(chunk({}, "stop", usage={"prompt_tokens": 1.0, "completion_tokens": -1, "x": {"y": 2}, "z": None})),
        [START, Finish("stop", "stop"), UsageReport(1, extra={"x": {"y": 2}})],
    ),
    "the other name of reasoning": (
        sse(chunk({"reasoning": "b"}), chunk({"reasoning": "c", "reasoning_content": "c"}, "stop")),
        [
            START,
            ReasoningDelta("b", "reasoning"),
            PassthroughFields("delta", {"reasoning": "c"}),
            ReasoningDelta("c"),
            Finish("stop", "stop"),
        ],
    ),
    "content as parts": (
        sse(
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}]}),
            chunk({"content": [{"type": "text", "text": "a"}]}, "stop"),
        ),
        [START, ReasoningDelta("b"), TextDelta("a"), Finish("stop", "stop")],
    ),
    "thinking as text": (
        sse(chunk({"content": [{"type": "thinking", "thinking": "b"}, {"type": "text", "text": ""}]}, "stop")),
        [START, ReasoningDelta("b"), Finish("stop", "stop")],
    ),
    "a message in place of the delta": (
        sse(_with_message({"content": "a", "reasoning_content": "b"}), _with_message({"content": "c"}, "stop")),
        [START, ReasoningDelta("b"), TextDelta("a"), TextDelta("c"), Finish("stop", "stop")],
    ),
    "a message behind the deltas, which it repeats": (
        sse(chunk({"content": "a"}), _with_message({"content": "a"}, "stop")),
        [
            START,
            TextDelta("a"),
            Notice(
                "backend",
                "ignored",
                "MESSAGE_IGNORED",
                "a whole message behind the deltas of a stream",
                level="warning",
            ),
            Finish("stop", "stop"),
        ],
    ),
    "a delta in place of the message": (
        json.dumps(chunk({"content": "a"}, "stop")).encode(),
        [START, TextDelta("a"), Finish("stop", "stop")],
    ),
    "unknown fields everywhere": (
        sse(
            chunk({"content": "a", "mood": "good"}, system_fingerprint="fp"),
            chunk({}, "stop", provider={"name": "x"}),
        ),
        [
            START,
            PassthroughFields("response", {"system_fingerprint": "fp"}),
            PassthroughFields("delta", {"mood": "good"}),
            TextDelta("a"),
            PassthroughFields("response", {"provider": {"name": "x"}}),
            Finish("stop", "stop"),
        ],
    ),
    "an uppercase reason": (sse(chunk({"content": "a"}, "STOP")), [START, TextDelta("a"), Finish("stop", "STOP")]),
    "a whole answer": (
        completion(
            {"role": "assistant", "content": "a", "refusal": None, "annotations": []}, usage={"total_tokens": 2}
        ),
        [
            START,
            PassthroughFields("delta", {"annotations": []}),
            TextDelta("a"),
            Finish("stop", "stop"),
            UsageReport(total_tokens=2),
        ],
    ),
    "a whole answer behind blanks": (
        b" \n" + completion({"content": "a"}),
        [START, TextDelta("a"), Finish("stop", "stop")],
    ),
    "half an emoji": (
        sse(chunk({"content": "?"}), chunk(finish="stop")).replace(b"?", b"a\\ud83d"),
        [START, TextDelta("a"), MENDED, Finish("stop", "stop")],
    ),
    "bytes that are no UTF-8": (
        sse(chunk({"content": "?"}), chunk(finish="stop")).replace(b"?", b"a\xf0\x9f"),
        [START, TextDelta("a"), MENDED, Finish("stop", "stop")],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_is_read_however_it_is_cut(shape: str) -> None:
    wire, expected = SHAPES[shape]
    for cutting in cuttings(wire, 2):
        assert replay(ChatDecoder(MAX_EVENT, 1), cutting) == expected


NOTICED: dict[str, tuple[bytes, str]] = {
    "content after the finish": (sse(*HELLO, chunk({"content": "late"}), chunk({"content": "later"})), "LATE_CONTENT"),
    "reasoning after the finish": (sse(*HELLO, chunk({"reasoning_content": "late"})), "LATE_CONTENT"),
    "an unknown field after the finish": (
        sse(*HELLO, chunk({"role": "assistant", "annotations": [1]})),
        "LATE_CONTENT",
    ),
    "another choice": (
        sse(
            chunk({"content": "Hello"}), chunk(choices=[{"index": 1, "delta": {"content": "b"}}]), chunk(finish="stop")
        ),
        "OTHER_CHOICE",
    ),
    "an event of another kind": (sse({"type": "ping"}, {"type": "ping"}, *HELLO), "UNKNOWN_EVENT"),
    "an unknown reason": (sse(HELLO[0], chunk(finish="bored")), "FINISH_REASON_UNKNOWN"),
    "no reason in a whole answer": (completion({"content": "Hello"}, None), "FINISH_REASON_MISSING"),
    "an unknown part": (sse(HELLO[0], chunk({"content": [{"type": "odd"}]}), HELLO[1]), "PART_UNKNOWN"),
    "an error after the finish": (sse(*HELLO, {"error": {"message": "boom"}}), "LATE_FAULT"),
    "a malformed event after the finish": (sse(*HELLO, done=False) + b"data: oops\n\n" + sse(), "LATE_FAULT"),
    "half an event at the end": (sse(*HELLO, done=False) + b'data: {"id"', "TAIL_BROKEN"),
}


@pytest.mark.parametrize("oddity", NOTICED)
def test_what_is_not_told_to_the_client_is_noticed_once(oddity: str) -> None:
    wire, rule = NOTICED[oddity]
    events = read(wire)
    assert rules_of(events) == [rule]
    assert fold(events).text == "Hello"


FAULTS: dict[str, tuple[bytes, type[BackendError], str | None, int]] = {
    "an error beside the finish": (
        sse({**chunk({"content": "a"}, "stop"), "error": "boom"}),
        BackendRejected,
        "upstream_error",
        502,
    ),
    "two answers": (
        b"[%b,%b]" % (completion({"content": "a"}), completion({"content": "b"})),
        BackendProtocolError,
        "upstream_invalid_response",
        502,
    ),
    "nothing": (b"", BackendTruncated, "upstream_invalid_response", 502),
    "blanks only": (b" \n\r\n", BackendTruncated, "upstream_invalid_response", 502),
    "no finish": (sse(HELLO[0], done=False), BackendTruncated, "upstream_stream_truncated", 502),
    "[DONE] without a finish": (sse(HELLO[0]), BackendTruncated, "upstream_stream_truncated", 502),
    "half an event": (sse(HELLO[0], done=False) + b'data: {"id":', BackendTruncated, "upstream_stream_truncated", 502),
    "no JSON": (b"data: oops\n\n", BackendProtocolError, "upstream_invalid_event", 502),
    "no object": (b"data: 7\n\n", BackendProtocolError, "upstream_invalid_event", 502),
    "deep JSON": (
        b"data: " + b'{"a":' * 500 + b"1" + b"}" * 500 + b"\n\n",
        BackendProtocolError,
        "upstream_invalid_event",
        502,
    ),
    "choices no array": (sse({"choices": {}}), BackendProtocolError, "upstream_invalid_event", 502),
    "a choice no object": (sse({"choices": [1]}), BackendProtocolError, "upstream_invalid_event", 502),
    "a delta no object": (sse({"choices": [{"delta": 1}]}), BackendProtocolError, "upstream_invalid_event", 502),
    "content a number": (sse(chunk({"content": 1})), BackendProtocolError, "upstream_invalid_event", 502),
    "a reason that is a number": (
        sse({"choices": [{"delta": {}, "finish_reason": 1}]}),
        BackendProtocolError,
        "upstream_invalid_event",
        502,
    ),
    "an event without end": (b"data: " + b"x" * 2 * MAX_EVENT, BackendProtocolError, "upstream_event_too_large", 502),
    "an answer without end": (b"{" + b"x" * 9 * MAX_EVENT, BackendProtocolError, "upstream_response_too_large", 502),
    "a whole answer cut off": (completion({"content": "a"})[:-9], BackendTruncated, "upstream_stream_truncated", 502),
    "a whole answer broken": (b'{"choices": oops}', BackendProtocolError, "upstream_invalid_response", 502),
    "a whole answer without choices": (b'{"choices": []}', BackendProtocolError, "upstream_invalid_response", 502),
    "broken off": (sse(HELLO[0], chunk(finish="error")), BackendRejected, "upstream_error", 502),
    "an error event": (sse(HELLO[0], {"error": {"message": "boom"}}), BackendRejected, "upstream_error", 502),
    "an error as text": (sse({"error": "boom"}), BackendRejected, "upstream_error", 502),
    "an error with a status": (
        sse({"error": {"message": "slow down", "code": 429}}),
        BackendRejected,
        "rate_limit_exceeded",
        429,
    ),
    "an error with a known code": (
        sse({"error": {"message": "no money", "code": "insufficient_quota"}}),
        BackendRejected,
        "insufficient_quota",
        429,
    ),
    "an error that says its own timeout": (
        sse({"error": {"message": "slow", "code": 504}}),
        BackendTimeout,
        "upstream_timeout",
        504,
    ),
    "a flat error": (sse({"object": "error", "message": "boom"}), BackendRejected, "upstream_error", 502),
    "an error in a whole answer": (b'{"error": {"message": "boom"}}', BackendRejected, "upstream_error", 502),
    "an error in a list": (b'[{"error": {"message": "boom"}}]', BackendRejected, "upstream_error", 502),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failure_is_never_a_success(fault: str) -> None:
    wire, kind, code, status = FAULTS[fault]
    for cutting in ([wire], cut(wire, range(0, len(wire), 97))):
        with pytest.raises(BackendError) as caught:
            replay(ChatDecoder(MAX_EVENT, 1), cutting)
        assert (type(caught.value), caught.value.code, caught.value.status) == (kind, code, status)


def test_a_reported_error_is_not_quoted() -> None:
    with pytest.raises(BackendRejected, match=r"error in its response\.$"):
        read(sse({"error": {"message": "the model is on fire", "type": "server_error"}}))


def test_a_whole_answer_is_closed_once() -> None:
    decoder = ChatDecoder(MAX_EVENT, 1)
    assert decoder.feed(completion({"content": "a"})) == []
    assert decoder.close() == [START, TextDelta("a"), Finish("stop", "stop")]
    assert decoder.close() == []


def test_done_stands_at_the_end_only() -> None:
    decoder = ChatDecoder(MAX_EVENT, 1)
    wire = sse(*HELLO)
    done = []
    for piece in (wire[:-1], wire[-1:]):
        decoder.feed(piece)
        done.append(decoder.done)
    assert done == [False, True]
    assert [event.rule for event in decoder.feed(sse(*HELLO)) if isinstance(event, Notice)] == ["LATE_EVENT"]
    assert decoder.feed(sse(*HELLO)) == [] and decoder.close() == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def objects(draw: st.DrawFn, known: dict[str, st.SearchStrategy[Json]]) -> dict[str, Json]:
    keys = draw(st.sets(st.sampled_from(sorted(known))))
    return {key: draw(known[key] | VALUES) if draw(st.booleans()) else draw(known[key]) for key in sorted(keys)}


FUNCTIONS = objects({"name": st.sampled_from(["f", "g", ""]), "arguments": st.sampled_from(["", "{", "}", "{}"])})
CALLS = objects({"index": st.integers(0, 2), "id": st.sampled_from(["a", "b", ""]), "function": FUNCTIONS})
DELTAS = objects({"content": st.text(max_size=3), "tool_calls": st.lists(CALLS, max_size=3), "reasoning": st.text()})
CHOICES = objects({"index": st.just(0), "delta": DELTAS, "finish_reason": st.sampled_from([None, "stop", "odd"])})
CHUNKS = objects({"choices": st.lists(CHOICES, max_size=2), "usage": VALUES, "id": st.text(max_size=2)})


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(CHUNKS, max_size=6), st.booleans())
def test_odd_chunks_give_events_in_order_or_a_backend_error(chunks: list[Json], done: bool) -> None:
    try:
        replay(ChatDecoder(MAX_EVENT, 1), [sse(*chunks, chunk(finish="stop"), done=done)])
    except BackendError as error:
        assert error.status >= 400


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(st.lists(CALLS, min_size=1, max_size=2), max_size=6))
def test_calls_keep_their_own_ids(pieces: list[list[Json]]) -> None:
    deltas = [chunk({"tool_calls": list(entries)}) for entries in pieces]
    try:
        answer = fold(read(sse(*deltas, chunk(finish="stop"))))
    except BackendError:
        return
    ids = [call.id for call in answer.calls]
    assert all(ids) and len(set(ids)) == len(ids)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_any_json_may_be_the_whole_answer(value: Json) -> None:
    for document in (value, {"choices": value}, {"choices": [{"message": value}]}):
        try:
            read(json.dumps(document).encode())
        except BackendError as error:
            assert error.status >= 400


def test_a_call_helper_leaves_out_what_is_not_said() -> None:
    assert call(0) == {"tool_calls": [{"index": 0}]}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "upstream_invalid_response"),
        (b"\n\n", "upstream_invalid_response"),
        (b": a comment\n\n", "upstream_invalid_response"),
        (b"no event at all", "upstream_invalid_response"),
        (b"data: [DONE]\n\n", "upstream_invalid_response"),
        (sse({"id": "x"}, done=False), "upstream_invalid_response"),
        (sse({"id": "x", "choices": []}), "upstream_invalid_response"),
        (b'{"id": "x"}', "upstream_invalid_response"),
        (b'{"choices": []}', "upstream_invalid_response"),
        (b"data: {", "upstream_stream_truncated"),
        (sse(chunk({"content": "a"}), done=False), "upstream_stream_truncated"),
        (sse(chunk({"content": "a"})), "upstream_stream_truncated"),
        (b'{"choices": [{"mess', "upstream_stream_truncated"),
    ],
)
def test_what_holds_no_answer_is_told_from_one_that_was_cut(body: bytes, code: str) -> None:
    with pytest.raises(BackendError) as caught:
        replay(ChatDecoder(MAX_EVENT, 1), [body])
    assert (caught.value.status, caught.value.code) == (502, code)


def test_a_malformed_event_can_be_found_but_not_read() -> None:
    with pytest.raises(BackendProtocolError) as caught:
        ChatDecoder(MAX_EVENT, 1).feed(b"data: secret\n\n")
    (notice,) = caught.value.notices
    assert notice.rule == "MALFORMED_EVENT" and "6 bytes" in notice.detail and "secret" not in notice.detail


@pytest.mark.parametrize(("second", "told"), [("stop", []), ("length", ["LATE_EVENT"])])
def test_the_first_of_two_finish_reasons_counts(second: str, told: list[str]) -> None:
    events = replay(ChatDecoder(MAX_EVENT, 1), [sse(chunk({"content": "a"}, "stop"), chunk(None, second))])
    assert fold(events).finish == Finish("stop", "stop")
    assert [event.rule for event in events if isinstance(event, Notice)] == told


@pytest.mark.parametrize(
    ("fields", "stop"),
    [
        ({"stop_reason": "END"}, "END"),
        ({"matched_stop": "END"}, "END"),
        ({"stop_reason": "end_turn"}, None),
        ({"stop_reason": 128009}, None),
        ({}, None),
    ],
)
def test_the_clients_stop_sequence_that_a_backend_names(fields: dict[str, Json], stop: str | None) -> None:
    choice: dict[str, Json] = {"index": 0, "finish_reason": "stop", **fields}
    wires = (
        sse(chunk({"content": "a"}), {"id": "c1", "model": "m", "choices": [{**choice, "delta": {}}]}),
        json.dumps({"id": "c1", "model": "m", "choices": [{**choice, "message": {"content": "a"}}]}).encode(),
    )
    for wire in wires:
        events = replay(ChatDecoder(MAX_EVENT, 1, ("STOP", "END")), [wire])
        assert [event for event in events if isinstance(event, Finish)] == [Finish("stop", "stop", stop)]
        assert (PassthroughFields("choice", fields) in events) == bool(fields)
