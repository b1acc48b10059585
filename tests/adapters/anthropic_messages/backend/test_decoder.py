from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.anthropic_messages.backend.decoder import MessagesDecoder
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTimeout, BackendTruncated
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.provider_state import with_provider_state
from gateway.testing.replay import cut, cuttings, replay
from tests.adapters.anthropic_messages.backend import wires
from tests.adapters.anthropic_messages.backend.wires import (
    TEXT,
    THINKING,
    arguments,
    block,
    call,
    end,
    grown,
    message,
    sse,
    start,
    text,
    thinking,
)

MAX_EVENT: Final = 1 << 16
START: Final = ResponseStart("m1", "m")
ASKED: Final = UsageReport(3)
COUNTED: Final = UsageReport(3, 4)
STOP: Final = Finish("stop", "end_turn")
HELLO: Final = block(0, TEXT, *text("Hello"))


def read(wire: bytes, *, own_client: bool = False) -> list[Event]:
    return replay(MessagesDecoder(MAX_EVENT, own_client=own_client), [wire])


def content(wire: bytes, *, own_client: bool = False) -> list[Event]:
    """The events between the start and the counts."""
    events = read(wire, own_client=own_client)
    return [event for event in events if not isinstance(event, ResponseStart | UsageReport | Finish)]


def rules(events: list[Event]) -> list[str]:
    return [event.rule for event in events if isinstance(event, Notice)]


def state(**fields: Json) -> JsonObject:
    return with_provider_state("anthropic", fields)


PING: Final[wires.Event] = {"type": "ping"}
MENDED: Final = Notice(
    "backend", "changed", "TEXT_MENDED", "half a character of a text became U+FFFD, or was left out", level="warning"
)
SHAPES: Final[dict[str, tuple[bytes, list[Event]]]] = {
    "no blank line behind the last event": (
        sse(start(), *HELLO, *end()).rstrip(),
        [START, ASKED, TextDelta("Hello"), COUNTED, STOP],
    ),
    "no names of events, comments, pings": (
        b"\xef\xbb\xbf\r\n: hi\n\n"
        + sse({"type": "ping"}, start(), {"type": "ping"}, *HELLO, {"type": "ping"}, *end()).replace(
            b"event: ", b"x: "
        ),
        [START, ASKED, TextDelta("Hello"), COUNTED, STOP],
    ),
    "a block that opens with its content": (
        sse(start(), *block(0, {"type": "text", "text": "Hel"}, *text("lo")), *end()),
        [START, ASKED, TextDelta("Hel"), TextDelta("lo"), COUNTED, STOP],
    ),
    "thinking that opens with its content": (
        sse(start(), *block(0, {"type": "thinking", "thinking": "hm", "signature": "s"}), *end()),
        [START, ASKED, ReasoningDelta("hm"), ReasoningEnd(state(signature="s")), COUNTED, STOP],
    ),
    "a call that opens with its input": (
        sse(start(), *block(0, {**call("a", "f"), "input": {"n": 1}}), *end("tool_use")),
        [
            *(START, ASKED, ToolCallStart(0, "a", "f"), ToolCallDelta(0, '{"n":1}'), ToolCallEnd(0)),
            *(COUNTED, Finish("tool_calls", "tool_use")),
        ],
    ),
    "empty pieces": (
        sse(start(), *block(0, TEXT, *text("", "a", "")), *block(1, THINKING, *thinking("")), *end()),
        [START, ASKED, TextDelta("a"), COUNTED, STOP],
    ),
    "two open blocks": (
        sse(
            start(),
            {"type": "content_block_start", "index": 0, "content_block": call("a", "f")},
            {"type": "content_block_start", "index": 1, "content_block": call("b", "g")},
            grown(1, arguments("{}")[0]),
            grown(0, arguments("{}")[0]),
            {"type": "content_block_stop", "index": 1},
            {"type": "content_block_stop", "index": 0},
            *end("tool_use"),
        ),
        [
            *(START, ASKED, ToolCallStart(0, "a", "f"), ToolCallStart(1, "b", "g"), ToolCallDelta(1, "{}")),
            *(ToolCallDelta(0, "{}"), ToolCallEnd(1), ToolCallEnd(0), COUNTED, Finish("tool_calls", "tool_use")),
        ],
    ),
    "no counts": (sse(start(None), *HELLO, *end(usage={})), [START, TextDelta("Hello"), STOP]),
    "no content": (sse(start(), *end("refusal")), [START, ASKED, COUNTED, Finish("content_filter", "refusal")]),
    "a whole response behind blanks": (
        b" \n" + message({"type": "text", "text": "Hi"}),
        [START, TextDelta("Hi"), COUNTED, STOP],
    ),
    "half an emoji": (
        sse(start(), *block(0, TEXT, *text("?")), *end()).replace(b"?", b"a\\ud83d"),
        [START, ASKED, TextDelta("a"), MENDED, COUNTED, STOP],
    ),
    "bytes that are no UTF-8": (
        sse(start(), *block(0, TEXT, *text("?")), *end()).replace(b"?", b"a\xf0\x9f"),
        [START, ASKED, TextDelta("a"), MENDED, COUNTED, STOP],
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_response_in_any_form_is_read(name: str) -> None:
    wire, expected = SHAPES[name]
    for cutting in cuttings(wire):
        assert replay(MessagesDecoder(MAX_EVENT), cutting) == expected


@pytest.mark.parametrize(
    ("reason", "sequence", "finish", "noted"),
    [
        ("end_turn", None, Finish("stop", "end_turn"), []),
        ("stop_sequence", "\n\n", Finish("stop", "stop_sequence", "\n\n"), []),
        ("max_tokens", None, Finish("length", "max_tokens"), []),
        ("model_context_window_exceeded", None, Finish("length", "model_context_window_exceeded"), []),
        ("refusal", None, Finish("content_filter", "refusal"), []),
        ("pause_turn", None, Finish("stop", "pause_turn"), ["TURN_INTERRUPTED"]),
        ("compaction", None, Finish("stop", "compaction"), ["TURN_INTERRUPTED"]),
        ("moonrise", None, Finish("stop", "moonrise"), ["FINISH_REASON_UNKNOWN"]),
    ],
)
def test_a_stop_reason_is_a_finish(reason: str, sequence: str | None, finish: Finish, noted: list[str]) -> None:
    streamed = read(sse(start(), *HELLO, *end(reason, sequence)))
    whole = read(message({"type": "text", "text": "Hello"}, reason=reason, stop_sequence=sequence))
    for events in (streamed, whole):
        assert events[-1] == finish
        assert rules(events) == noted


COUNTS: Final[dict[str, tuple[Json, Json, list[UsageReport]]]] = {
    "prompt first": (
        {"input_tokens": 5, "output_tokens": 1},
        {"output_tokens": 7},
        [UsageReport(5), UsageReport(5, 7)],
    ),
    "all at the end": (None, {"input_tokens": 5, "output_tokens": 7}, [UsageReport(5, 7)]),
    "later counts replace": (
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": 5, "output_tokens": 7},
        [UsageReport(0), UsageReport(5, 7)],
    ),
    "the cache is part of the prompt": (
        {"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 100, "output_tokens": 1},
        {"output_tokens": 7},
        [
            UsageReport(125, extra={"prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 100}}),
            UsageReport(125, 7, extra={"prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 100}}),
        ],
    ),
    "nothing was read from the cache": (
        {"input_tokens": 5, "cache_read_input_tokens": 0, "output_tokens": 1},
        {"output_tokens": 7},
        [
            UsageReport(5, extra={"prompt_tokens_details": {"cached_tokens": 0}}),
            UsageReport(5, 7, extra={"prompt_tokens_details": {"cached_tokens": 0}}),
        ],
    ),
    "thinking is part of the completion": (
        {"input_tokens": 5},
        {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 4}},
        [UsageReport(5), UsageReport(5, 7, extra={"completion_tokens_details": {"reasoning_tokens": 4}})],
    ),
    "impossible counts": ({"input_tokens": -1, "output_tokens": "x"}, {"output_tokens": None}, []),
    "no prompt": ({}, {"output_tokens": 7}, [UsageReport(None, 7)]),
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_tokens_are_counted(name: str) -> None:
    first, last, expected = COUNTS[name]
    events = read(sse(start(first), *HELLO, *end(usage=last)))
    assert [event for event in events if isinstance(event, UsageReport)] == expected
    merged: Json = {**(first if isinstance(first, dict) else {}), **(last if isinstance(last, dict) else {})}
    events = read(message({"type": "text", "text": "Hello"}, usage=merged))
    assert [event for event in events if isinstance(event, UsageReport)] == expected[-1:]


def meanings(wire: bytes) -> list[Event]:
    """The events that a client of the same API gets beside those of the wire."""
    return [event for event in content(wire, own_client=True) if not isinstance(event, PassthroughFields)]


def test_redacted_thinking_is_a_state_without_text() -> None:
    wire = sse(start(), *block(0, {"type": "redacted_thinking", "data": "d"}), *HELLO_AT_1, *end())
    assert meanings(wire) == [ReasoningEnd(state(data="d")), TextDelta("Hello")]
    assert content(wire) == [ReasoningEnd(state(data="d")), TextDelta("Hello")]


HELLO_AT_1: Final = block(1, TEXT, *text("Hello"))
TWO_THOUGHTS: Final = sse(
    start(),
    *block(0, THINKING, *thinking("a", signature="s")),
    *HELLO_AT_1,
    *block(2, THINKING, *thinking("b", signature="t")),
    *end(),
)


def test_a_client_of_the_same_api_gets_the_state_of_each_piece_of_reasoning() -> None:
    assert meanings(TWO_THOUGHTS) == [
        *(ReasoningDelta("a"), ReasoningEnd(state(signature="s")), TextDelta("Hello")),
        *(ReasoningDelta("b"), ReasoningEnd(state(signature="t"))),
    ]


def test_any_other_client_gets_each_state_with_its_place_behind_other_blocks() -> None:
    assert content(TWO_THOUGHTS) == [
        *(ReasoningDelta("a"), ReasoningEnd(state(signature="s")), TextDelta("Hello"), ReasoningDelta("b")),
        ReasoningEnd(state(signature="t", length=1, calls=0, behind_text=True)),
    ]


SEARCH: Final[dict[str, Json]] = {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}
FOUND: Final[dict[str, Json]] = {"type": "web_search_tool_result", "tool_use_id": "x", "content": []}
SEARCHED: Final = sse(
    start(container={"id": "c"}, diagnostics=None),
    *block(0, {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}, *arguments('{"q":', '"a"}')),
    *block(1, FOUND),
    *block(2, {**call("a", "f"), "caller": {"type": "direct"}}, *arguments("{}")),
    {"type": "telemetry"},
    *end("tool_use", stop_details={"type": "refusal"}),
)


def test_a_client_of_the_same_api_gets_the_events_that_say_more_than_those_of_the_core() -> None:
    opened: Json = {"type": "content_block_start", "index": 2, "content_block": {"caller": {"type": "direct"}}}
    piece = arguments('{"q":', '"a"}')
    assert content(SEARCHED, own_client=True) == [
        PassthroughFields("event", start(container={"id": "c"}, diagnostics=None)),
        *[PassthroughFields("event", event) for event in block(0, SEARCH, *piece)],
        *[PassthroughFields("event", event) for event in block(1, FOUND)],
        ToolCallStart(2, "a", "f", extra={"anthropic_messages": opened}),
        ToolCallDelta(2, "{}"),
        ToolCallEnd(2),
        PassthroughFields("event", {"type": "telemetry"}),
        PassthroughFields("event", end("tool_use", stop_details={"type": "refusal"})[0]),
    ]


def test_any_other_client_gets_a_notice_instead() -> None:
    events = content(SEARCHED)
    assert [(event.rule, event.detail.split(",")[0]) for event in events if isinstance(event, Notice)] == [
        ("FIELD_NOT_SHOWN", "the client's dialect has no field for container"),
        ("PART_UNKNOWN", "a content block of type 'server_tool_use'"),
        ("PART_UNKNOWN", "a content block of type 'web_search_tool_result'"),
        ("FIELD_NOT_SHOWN", "the client's dialect has no field for caller"),
        ("UNKNOWN_EVENT", "an event that is not part of a message"),
        ("FIELD_NOT_SHOWN", "the client's dialect has no field for stop_details"),
    ]
    assert [event for event in events if not isinstance(event, Notice)] == [
        ToolCallStart(2, "a", "f", extra=EMPTY),
        ToolCallDelta(2, "{}"),
        ToolCallEnd(2),
    ]


MALFORMED: Final[dict[str, list[wires.Event]]] = {
    "content before the start": [*HELLO],
    "a second start": [start(), start()],
    "a start without a message": [{"type": "message_start"}],
    "a block without an index": [start(), {"type": "content_block_start", "content_block": TEXT}],
    "a block that is no object": [start(), {"type": "content_block_start", "index": 0, "content_block": []}],
    "a block without a type": [start(), {"type": "content_block_start", "index": 0, "content_block": {}}],
    "an index twice": [start(), *HELLO, *HELLO],
    "a delta of no block": [start(), grown(0, text("a")[0])],
    "a delta of a closed block": [start(), *HELLO, grown(0, text("a")[0])],
    "a delta of an odd index": [start(), {"type": "content_block_delta", "index": [0], "delta": text("a")[0]}],
    "a delta without a type": [start(), *HELLO[:1], grown(0, {})],
    "a delta without its field": [start(), *HELLO[:1], grown(0, {"type": "text_delta"})],
    "thinking in a block of text": [start(), *HELLO[:1], grown(0, thinking("a")[0])],
    "text in a call": [start(), *block(0, call("a", "f"), *text("a"))],
    "text in redacted thinking": [start(), *block(0, {"type": "redacted_thinking", "data": "d"}, *text("a"))],
    "a stop of no block": [start(), {"type": "content_block_stop", "index": 0}],
    "the end inside a call without input": [start(), *block(0, call("a", "f"))[:-1], *end("tool_use")],
    "a stop reason that is no text": [start(), {"type": "message_delta", "delta": {"stop_reason": 7}}],
    "a message delta without a delta": [start(), {"type": "message_delta"}],
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("own_client", [True, False])
def test_events_out_of_order_are_an_error(name: str, own_client: bool) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        read(sse(*MALFORMED[name], *end()), own_client=own_client)
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_event")
    assert [notice.rule for notice in caught.value.notices] == ["MALFORMED_EVENT"]


UNENDED: Final[dict[str, tuple[list[wires.Event], list[object]]]] = {
    "text": (HELLO[:-1], [TextDelta("Hello")]),
    "thinking": (block(0, THINKING, *thinking("Hm."))[:-1], [ReasoningDelta("Hm.")]),
    "a call": (
        block(0, call("a", "f"), *arguments("{}"))[:-1],
        [ToolCallStart(0, "a", "f", extra=EMPTY), ToolCallDelta(0, "{}"), ToolCallEnd(0)],
    ),
    "a search of the backend": (block(0, {"type": "server_tool_use", "id": "a", "name": "f", "input": {}})[:-1], []),
    "all": ([*HELLO[:-1], *block(1, call("a", "f"), *arguments("{}"))[:-1]], []),
}


@pytest.mark.parametrize("name", UNENDED)
@pytest.mark.parametrize("own_client", [True, False])
def test_a_block_without_an_end_gets_one_where_nothing_is_lost(name: str, own_client: bool) -> None:
    events, expected = UNENDED[name]
    found = read(sse(start(), *events, *end("tool_use")), own_client=own_client)
    assert [event.rule for event in found if isinstance(event, Notice)].count("STREAM_MENDED") == 1
    assert isinstance(found[-1], Finish)
    assert all(event in found for event in expected)


@pytest.mark.parametrize("name", UNENDED)
def test_a_stream_that_is_cut_inside_a_block_is_an_error(name: str) -> None:
    with pytest.raises(BackendTruncated):
        read(sse(start(), *UNENDED[name][0]))


@pytest.mark.parametrize("data", [b"{", b"[1]", b"7", b'"x"', b"{'a': 1}", b"\xff{no event"])
def test_what_is_no_event_is_an_error(data: bytes) -> None:
    with pytest.raises(BackendProtocolError, match=r"malformed event"):
        read(sse(start(), *HELLO) + b"data: " + data + b"\n\n" + sse(*end()))


@pytest.mark.parametrize("opened", [call("a", ""), {"type": "tool_use", "id": "a"}])
def test_a_call_without_a_name_is_an_error(opened: wires.Event) -> None:
    with pytest.raises(BackendError) as caught:
        read(sse(start(), *block(0, opened), *end("tool_use")))
    assert caught.value.code == "upstream_invalid_tool_call"


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (b"", "upstream_invalid_response"),
        (b" \n", "upstream_invalid_response"),
        (b": nothing\n\n", "upstream_invalid_response"),
        (sse({"type": "ping"}), "upstream_invalid_response"),
        (sse(start()), "upstream_stream_truncated"),
        (sse(start())[:30], "upstream_stream_truncated"),
        (sse(start(), *HELLO), "upstream_stream_truncated"),
        (sse(start(), *HELLO, *end()[:1]), "upstream_stream_truncated"),
        (sse(start(), *HELLO, *end(None)), "upstream_stream_truncated"),
        (message({"type": "text", "text": "Hello"})[:-9], "upstream_stream_truncated"),
        (message({"type": "text", "text": "Hello"}, reason=None), "upstream_stream_truncated"),
    ],
)
def test_a_response_without_its_end_is_an_error(wire: bytes, code: str) -> None:
    with pytest.raises(BackendTruncated) as caught:
        read(wire)
    assert caught.value.code == code


@pytest.mark.parametrize("body", [b"{}", b'{"content": 7}', b'{"x": nope}', b'{"type": "message", "content": {}}'])
def test_json_that_is_no_message_is_an_error(body: bytes) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        read(body)
    assert caught.value.code == "upstream_invalid_response"


ERRORS: Final[dict[str, tuple[type[BackendError], int, str]]] = {
    "invalid_request_error": (BackendRejected, 400, "invalid_value"),
    "authentication_error": (BackendRejected, 502, "upstream_auth_error"),
    "billing_error": (BackendRejected, 402, "insufficient_quota"),
    "permission_error": (BackendRejected, 502, "upstream_auth_error"),
    "not_found_error": (BackendRejected, 404, "model_not_found"),
    "request_too_large": (BackendRejected, 413, "request_too_large"),
    "rate_limit_error": (BackendRejected, 429, "rate_limit_exceeded"),
    "api_error": (BackendRejected, 502, "upstream_error"),
    "timeout_error": (BackendTimeout, 504, "upstream_timeout"),
    "overloaded_error": (BackendRejected, 503, "upstream_overloaded"),
    "moonrise": (BackendRejected, 502, "upstream_error"),
}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("begun", [True, False])
def test_an_error_in_a_response_has_the_status_of_its_type(kind: str, begun: bool) -> None:
    body: wires.Event = {"type": "error", "error": {"type": kind, "message": "Its own words."}}
    before = [start(), *HELLO] if begun else []
    for wire in (sse(*before, body), *([] if begun else [sse(body)[len(b"event: error\ndata: ") :]])):
        with pytest.raises(BackendError) as caught:
            read(wire)
        error = caught.value
        assert (type(error), error.status, error.code) == ERRORS[kind]
        assert error.words == "Its own words."


def test_the_text_before_an_error_is_kept() -> None:
    body: wires.Event = {"error": "Its own words."}
    wire = sse(start(), *HELLO) + b'data: {"error": "Its own words."}\n\n'
    for cutting in (cut(wire, range(len(wire))), [wire]):
        decoder, events = MessagesDecoder(MAX_EVENT), list[Event]()
        with pytest.raises(BackendRejected) as caught:
            for piece in cutting:
                events += decoder.feed(piece)
        assert [*events, *caught.value.events] == [START, ASKED, TextDelta("Hello")]
        assert caught.value.words == body["error"]


def test_what_follows_the_end_is_reported_and_left_out() -> None:
    events = read(sse(start(), *HELLO, *end(), *HELLO) + b"data: \xff{no event\n\n")
    assert rules(events) == ["LATE_EVENT"]
    assert [event for event in events if not isinstance(event, Notice)] == [
        START,
        ASKED,
        TextDelta("Hello"),
        COUNTED,
        STOP,
    ]


def test_a_response_is_done_with_its_last_event() -> None:
    decoder = MessagesDecoder(MAX_EVENT)
    decoder.feed(sse(start(), *HELLO, *end()[:1]))
    before = decoder.done
    decoder.feed(sse(end()[1]))
    assert (before, decoder.done, decoder.close()) == (False, True, [])


def test_each_unknown_kind_is_reported_once() -> None:
    odd: list[wires.Event] = [{"type": "telemetry"}, {"type": "moonrise"}, {"type": 7}]
    unknown = grown(0, {"type": "citations_delta", "citation": {}})
    wire = sse(start(), *odd, *HELLO[:1], unknown, unknown, *HELLO[1:], *end())
    assert rules(read(wire)) == ["UNKNOWN_EVENT", "PART_UNKNOWN"]


CITED: Final[Json] = {"type": "char_location", "cited_text": "x"}
QUOTED: Final[wires.Event] = {"type": "citations_delta", "citation": CITED}


@pytest.mark.parametrize("citations", [[CITED], []])
def test_the_citations_of_a_whole_text_are_for_clients_of_the_same_api(citations: list[Json]) -> None:
    wire = message({"type": "text", "text": "Hello", "citations": citations})
    opened: Json = {"type": "text", "text": "", "citations": citations}
    own = read(wire, own_client=True)
    assert own[2:4] == [
        PassthroughFields("event", {"type": "content_block_start", "content_block": opened}),
        TextDelta("Hello"),
    ]
    other = read(wire)
    assert rules(other) == ["PART_UNKNOWN"] * len(citations)
    assert not [event for event in other if isinstance(event, PassthroughFields)]


def test_a_streamed_citation_stands_where_it_came() -> None:
    cited = block(0, TEXT, *text("Hel"), QUOTED, *text("lo"))
    wire = sse(start(), *cited, *end())
    own = [event for event in content(wire, own_client=True) if event != PassthroughFields("event", cited[0])]
    assert own[1:4] == [TextDelta("Hel"), PassthroughFields("event", grown(0, QUOTED)), TextDelta("lo")]
    assert rules(content(wire)) == ["PART_UNKNOWN"]


@pytest.mark.parametrize("opened", [TEXT, THINKING])
def test_the_first_block_of_a_stream_waits_for_its_content(opened: dict[str, Json]) -> None:
    """Until it has some, nothing is sent, and a failure can still be a status."""
    begun: wires.Event = {"type": "content_block_start", "index": 0, "content_block": opened}
    decoder = MessagesDecoder(MAX_EVENT, own_client=True)
    decoder.feed(sse(start()))
    assert decoder.feed(sse(begun)) == []
    piece = (text if opened is TEXT else thinking)("a")[0]
    first, _ = decoder.feed(sse(grown(0, piece)))
    assert first == PassthroughFields("event", begun)


def test_a_field_for_errors_may_be_empty() -> None:
    assert read(message({"type": "text", "text": "Hello"}, error=None))[-1] == STOP


def test_a_response_may_not_be_larger_than_four_events() -> None:
    large = message({"type": "text", "text": "x" * 5000})
    with pytest.raises(BackendProtocolError) as caught:
        replay(MessagesDecoder(1000), [large])
    assert caught.value.code == "upstream_response_too_large"


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KINDS: Final = st.sampled_from(
    [
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"),
        *("message_stop", "ping", "error", "x"),
    ]
)
FIELDS: Final = st.dictionaries(st.sampled_from(["index", "delta", "content_block", "message", "usage", "error"]), JSON)


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(st.builds(lambda kind, fields: {**fields, "type": kind}, KINDS, FIELDS), max_size=6), st.booleans())
def test_any_events_are_read_or_an_error(odd: list[wires.Event], own_client: bool) -> None:
    try:
        read(sse(start(), *HELLO[:1], *odd, *HELLO[1:], *end()), own_client=own_client)
    except BackendError as error:
        assert 400 <= error.status <= 599


@pytest.mark.parametrize("block_of", [{"type": "text", "text": 5}, {"type": "thinking", "thinking": ["a"]}])
def test_a_block_whose_content_is_no_text_is_an_error(block_of: JsonObject) -> None:
    for wire in (wires.message(dict(block_of)), sse(start(), *block(0, dict(block_of)), *end())):
        with pytest.raises(BackendProtocolError, match="of a block is not text"):
            replay(MessagesDecoder(MAX_EVENT), [wire])


def test_a_block_that_begins_with_null_is_empty() -> None:
    wire = sse(start(), *block(0, {"type": "text", "text": None}, *text("a")), *end())
    assert replay(MessagesDecoder(MAX_EVENT), [wire]) == [START, ASKED, TextDelta("a"), COUNTED, STOP]
