"""What each item and event of the wire means, to a client of its dialect and to any other."""

from collections.abc import Sequence
from typing import Final

import pytest

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import BackendProtocolError, BackendTruncated
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
from gateway.core.provider_state import with_provider_state
from tests.adapters.openai_responses.reading import OTHER, OWN, decoded, failure, rules
from tests.adapters.openai_responses.wires import (
    WireEvent,
    added,
    call,
    call_events,
    created,
    delta,
    done,
    ended,
    message,
    reasoning,
    sse,
    text_events,
    whole,
)

START: Final = ResponseStart("r1", "m")
STOP: Final = Finish("stop", "completed")
STATE: Final = ReasoningEnd(with_provider_state("openai", {"id": "rs_1", "encrypted_content": "e"}))
REFUSAL: Final[Json] = {"type": "refusal", "refusal": "No."}


def streamed(*events: WireEvent, last: WireEvent | None = None) -> bytes:
    return sse(created(), *events, ended() if last is None else last)


def test_parallel_calls_may_interleave() -> None:
    f, g = call_events(0, '{"a":', "1}"), call_events(1, "{", "}", name="g", call_id="b")
    wire = streamed(f[0], g[0], f[1], g[1], f[2], g[2], *g[3:], *f[3:])
    assert decoded(wire) == [
        START,
        ToolCallStart(0, "a", "f"),
        ToolCallStart(1, "b", "g"),
        ToolCallDelta(0, '{"a":'),
        ToolCallDelta(1, "{"),
        ToolCallDelta(0, "1}"),
        ToolCallDelta(1, "}"),
        ToolCallEnd(1),
        ToolCallEnd(0),
        STOP,
    ]


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (text_events(0, "a", "b"), "ab"),
        ([added(0, message()), done(0, message("ab"))], "ab"),
        ([added(0, message()), delta("output_text", 0, "a", content_index=0), done(0, message("ab"))], "ab"),
        ([done(0, message("ab"))], "ab"),
        ([*text_events(0, "a"), *text_events(1, "b")], "ab"),
        ([added(0, message()), delta("output_text", 0, "", content_index=0), done(0, message(""))], ""),
    ],
)
def test_a_text_is_complete_however_it_arrives(events: Sequence[WireEvent], text: str) -> None:
    assert decoded(streamed(*events)) == [START, *([TextDelta(text)] if text else []), STOP]


def test_the_last_event_may_hold_the_output_alone() -> None:
    assert decoded(streamed(last=ended(output=[message("ab"), call("{}")]))) == [
        START,
        TextDelta("ab"),
        ToolCallStart(1, "a", "f"),
        ToolCallDelta(1, "{}"),
        ToolCallEnd(1),
        STOP,
    ]


def test_output_that_was_streamed_is_not_read_again() -> None:
    assert decoded(streamed(*text_events(0, "ab"), last=ended(output=[message("ab")]))) == [
        START,
        TextDelta("ab"),
        STOP,
    ]


def test_a_whole_text_that_differs_is_reported() -> None:
    events = [added(0, message()), delta("output_text", 0, "a", content_index=0), done(0, message("b"))]
    assert decoded(streamed(*events)) == [START, TextDelta("a"), STOP]
    assert rules(streamed(*events)) == ["SHOWN_TEXT_REPLACED"]


def test_half_a_character_is_not_compared() -> None:
    wire = streamed(added(0, message()), delta("output_text", 0, "(?)", content_index=0), done(0, message("ä")))
    assert rules(wire.replace(b"(?)", b"\xff")) == []


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        (call_events(0, '{"a":', "1}"), '{"a":1}'),
        ([added(0, call()), done(0, call('{"a":1}'))], '{"a":1}'),
        ([added(0, call()), done(0, call())], "{}"),
        ([added(0, call(name=None)), done(0, call('{"a":1}'))], '{"a":1}'),
        ([added(0, call()), delta("function_call_arguments", 0, '{"a"'), done(0, call('{"a":1}'))], '{"a":1}'),
        ([added(0, call()), delta("function_call_arguments", 0, '{"a": 1}'), done(0, call('{"a":1}'))], '{"a": 1}'),
    ],
)
def test_arguments_are_complete_however_they_arrive(events: Sequence[WireEvent], arguments: str) -> None:
    assert decoded(streamed(*events)) == [
        START,
        ToolCallStart(0, "a", "f"),
        ToolCallDelta(0, arguments),
        ToolCallEnd(0),
        STOP,
    ]


@pytest.mark.parametrize(
    "events",
    [
        [added(0, call()), delta("function_call_arguments", 0, "{}"), done(0, call('{"a":1}'))],
        [added(0, call()), delta("function_call_arguments", 0, "{"), done(0, call("["))],
        [added(0, call(name=None)), done(0, call(name=None))],
        [added(0, call())],
        [added(0, message()), added(1, call())],
    ],
)
def test_a_call_of_which_none_can_be_made_is_an_error(events: Sequence[WireEvent]) -> None:
    error = failure(streamed(*events))
    assert error is not None and (error.status, error.code) == (502, "upstream_invalid_tool_call")


@pytest.mark.parametrize(("ids", "made"), [(("a", "a"), ("a", "call_1_1")), ((None, ""), ("fc_1", "call_1_1"))])
def test_every_call_has_an_id_of_its_own(ids: tuple[str | None, str | None], made: tuple[str, str]) -> None:
    wire = whole(*(call("{}", call_id=call_id) for call_id in ids))
    assert tuple(event.id for event in decoded(wire) if isinstance(event, ToolCallStart)) == made
    assert "CALL_ID_MADE" in rules(wire)


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        ({"type": "custom_tool_call", "name": "run", "input": 'say "hi"\n'}, "run", r'{"input":"say \"hi\"\n"}'),
        ({"type": "custom_tool_call", "name": "run", "input": ""}, "run", '{"input":""}'),
        ({"type": "function_call", "name": "look", "namespace": "docs", "arguments": "{}"}, "docs__look", "{}"),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, "local_shell", '{"command":["ls"]}'),
        ({"type": "shell_call", "action": {"commands": ["ls"]}}, "shell", '{"commands":["ls"]}'),
        ({"type": "apply_patch_call", "operation": {"type": "delete_file"}}, "apply_patch", '{"type":"delete_file"}'),
        ({"type": "tool_search_call", "arguments": {"query": "x"}}, "tool_search", '{"query":"x"}'),
    ],
)
@pytest.mark.parametrize("dialect", [OWN, OTHER])
def test_every_call_that_the_client_runs_is_one_of_a_function(
    item: WireEvent, name: str, arguments: str, dialect: str
) -> None:
    begun = {key: "" if key in ("input", "arguments") else value for key, value in item.items()}
    for wire in (
        whole({**item, "call_id": "a"}),
        streamed(added(0, {**begun, "call_id": "a"}), done(0, {**item, "call_id": "a"})),
    ):
        assert decoded(wire, dialect) == [
            START,
            ToolCallStart(0, "a", name),
            ToolCallDelta(0, arguments),
            ToolCallEnd(0),
            STOP,
        ]


def test_the_input_of_a_custom_tool_grows_inside_its_object() -> None:
    item: WireEvent = {"type": "custom_tool_call", "name": "run", "call_id": "a", "input": ""}
    pieces = [delta("custom_tool_call_input", 0, text) for text in ('"', "ü", "\n")]
    wire = streamed(added(0, item), *pieces, done(0, {**item, "input": '"ü\n'}))
    assert ToolCallDelta(0, '{"input":"\\"ü\\n"}') in decoded(wire)


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


@pytest.mark.parametrize(
    "wire",
    [
        whole({**message(), "content": [REFUSAL]}),
        streamed(
            added(0, message()),
            delta("refusal", 0, "No", content_index=0),
            delta("refusal", 0, ".", content_index=0),
            done(0, {**message(), "content": [REFUSAL]}),
        ),
    ],
)
def test_a_refusal_is_text(wire: bytes) -> None:
    assert decoded(wire) == [START, TextDelta("No."), STOP]
    assert rules(wire) == ["REFUSAL_AS_TEXT"]


def test_a_part_of_an_unknown_type_is_reported() -> None:
    parts: list[Json] = [{"type": "smell", "smell": "x"}, "text", {"type": "output_text", "text": 7}]
    assert rules(whole({**message(), "content": parts})) == ["PART_UNKNOWN"] * 3


SEARCH: Final[WireEvent] = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
SEARCHED: Final[list[WireEvent]] = [
    added(0, {**SEARCH, "status": "in_progress"}),
    {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"},
    done(0, SEARCH),
]


def test_items_of_the_backends_own_tools_reach_a_client_of_the_dialect() -> None:
    passed = [event for event in decoded(streamed(*SEARCHED), OWN) if isinstance(event, PassthroughFields)]
    assert [event.fields["type"] for event in passed] == [event["type"] for event in SEARCHED]
    assert all(event.scope == "event" for event in passed)
    (alone,) = [event for event in decoded(whole(SEARCH), OWN) if isinstance(event, PassthroughFields)]
    assert alone.fields == {"type": "response.output_item.done", "output_index": 0, "item": SEARCH}


def test_any_other_client_is_told_that_it_does_not_get_them() -> None:
    assert decoded(streamed(*SEARCHED, *text_events(1, "a"))) == [START, TextDelta("a"), STOP]
    assert rules(streamed(*SEARCHED)) == ["UNKNOWN_EVENT", "UNKNOWN_EVENT"]


ANNOTATION: Final[WireEvent] = {"type": "url_citation", "url": "https://x"}
LOGPROBS: Final[Json] = [{"token": "a", "logprob": -0.1}]


def annotated() -> list[bytes]:
    part: WireEvent = {"type": "output_text", "text": "a", "annotations": [ANNOTATION]}
    item: WireEvent = {**message(), "content": [part]}
    event: WireEvent = {
        "type": "response.output_text.annotation.added",
        "output_index": 0,
        "content_index": 0,
        "annotation": ANNOTATION,
    }
    stream = streamed(added(0, message()), delta("output_text", 0, "a", content_index=0), event, done(0, item))
    return [stream, whole(item)]


@pytest.mark.parametrize("wire", annotated(), ids=["streamed", "whole"])
def test_annotations_reach_a_client_of_the_dialect_once(wire: bytes) -> None:
    passed = [event for event in decoded(wire, OWN) if isinstance(event, PassthroughFields)]
    assert [event.fields["annotation"] for event in passed] == [ANNOTATION]
    assert rules(wire) == ["UNKNOWN_EVENT"]


CUSTOM: Final[WireEvent] = {"type": "custom_tool_call", "name": "run", "call_id": "a", "input": ""}
NOTE: Final[WireEvent] = {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": ANNOTATION}


@pytest.mark.parametrize(
    "before",
    [[], [added(0, CUSTOM), done(0, CUSTOM)], [added(0, message()), done(0, message("a"))]],
    ids=["nothing", "call", "ended"],
)
@pytest.mark.parametrize("dialect", [OWN, OTHER])
def test_an_annotation_belongs_to_an_open_message(before: list[WireEvent], dialect: str) -> None:
    error = failure(streamed(*before, NOTE), dialect)
    assert isinstance(error, BackendProtocolError)


@pytest.mark.parametrize("streams", [True, False])
def test_messages_stay_apart_for_a_client_of_the_dialect(streams: bool) -> None:
    one, two = {**message("a"), "phase": "commentary"}, message("b")
    wire = streamed(added(0, {**one, "content": []}), done(0, one), done(1, two)) if streams else whole(one, two)
    began = [event.fields["item"] for event in decoded(wire, OWN) if isinstance(event, PassthroughFields)]
    assert began == [{"type": "message", "phase": "commentary"}, {"type": "message"}]
    assert decoded(wire) == [START, TextDelta("ab"), STOP]


@pytest.mark.parametrize("name", ["output_text", "refusal", "reasoning_text", "reasoning_summary_text"])
def test_a_text_belongs_to_an_open_item(name: str) -> None:
    place = {"summary_index" if "summary" in name else "content_index": 0}
    error = failure(streamed(delta(name, 0, "a", **place)))
    assert isinstance(error, BackendProtocolError) and error.take_events() == [START]


@pytest.mark.parametrize(
    "wire",
    [
        streamed(
            added(0, message()),
            delta("output_text", 0, "a", content_index=0, logprobs=LOGPROBS),
            done(0, message("a")),
        ),
        whole({**message(), "content": [{"type": "output_text", "text": "a", "logprobs": LOGPROBS}]}),
    ],
    ids=["streamed", "whole"],
)
def test_log_probabilities_reach_a_client_of_the_dialect(wire: bytes) -> None:
    assert decoded(wire, OWN)[1:3] == [PassthroughFields("delta", {"logprobs": LOGPROBS}), TextDelta("a")]
    assert (decoded(wire), rules(wire)) == ([START, TextDelta("a"), STOP], ["FIELD_NOT_SHOWN"])


def test_fields_of_the_response_reach_a_client_of_the_dialect() -> None:
    wire = streamed(last=ended(service_tier="flex", temperature=1.0, x_own={"a": 1}, store=True, background=False))
    (passed,) = [event for event in decoded(wire, OWN) if isinstance(event, PassthroughFields)]
    said: JsonObject = {"service_tier": "flex", "temperature": 1.0, "x_own": {"a": 1}}
    assert passed == PassthroughFields("response", said)
    assert not any(isinstance(event, PassthroughFields) for event in decoded(wire))


@pytest.mark.parametrize(
    ("details", "reason", "rule"),
    [
        ({"reason": "max_output_tokens"}, "length", []),
        ({"reason": "content_filter"}, "content_filter", []),
        ({"reason": "full_moon"}, "length", ["FINISH_REASON_UNKNOWN"]),
        (None, "length", ["FINISH_REASON_UNKNOWN"]),
    ],
)
@pytest.mark.parametrize("streams", [True, False])
def test_an_incomplete_response_says_why(details: Json, reason: str, rule: list[str], streams: bool) -> None:
    last = ended("incomplete", incomplete_details=details)
    wire = whole(message("a"), status="incomplete", incomplete_details=details)
    if streams:
        wire = streamed(added(0, message()), delta("output_text", 0, "a", content_index=0), last=last)
    *_, text, finish = decoded(wire)
    assert text == TextDelta("a")
    assert isinstance(finish, Finish) and (finish.reason, finish.raw) == (reason, "incomplete")
    assert rules(wire) == rule


@pytest.mark.parametrize(
    ("begun", "piece", "arguments"),
    [
        (call(), None, ""),
        (call(), delta("function_call_arguments", 0, '{"a'), '{"a'),
        (CUSTOM, delta("custom_tool_call_input", 0, "b"), '{"input":"b'),
    ],
)
@pytest.mark.parametrize("ends", [True, False])
def test_a_call_of_an_incomplete_response_is_not_completed(
    begun: WireEvent, piece: WireEvent | None, arguments: str, ends: bool
) -> None:
    end = [done(0, {**begun, "status": "incomplete"})] if ends else []
    last = ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
    read = decoded(streamed(added(0, begun), *([] if piece is None else [piece]), *end, last=last))
    assert "".join(event.arguments for event in read if isinstance(event, ToolCallDelta)) == arguments
    assert read[-2:] == [ToolCallEnd(0), Finish("length", "incomplete")]


def test_an_event_and_its_response_must_both_say_that_it_is_complete() -> None:
    last: WireEvent = {**ended("incomplete", incomplete_details={"reason": "content_filter"})}
    assert decoded(streamed(last={**last, "type": "response.completed"}))[-1] == Finish("content_filter", "incomplete")
    for status in ("in_progress", "queued", "odd"):
        error = failure(streamed(last={**ended(status), "type": "response.completed"}))
        assert error is not None and error.code == "upstream_invalid_response"
        error = failure(whole(message("a"), status=status))
        assert error is not None and error.code == "upstream_invalid_response"


@pytest.mark.parametrize(
    ("usage", "report"),
    [
        ({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, UsageReport(1, 2, 3)),
        ({"input_tokens": 1.0, "output_tokens": -2, "total_tokens": "3"}, UsageReport(1)),
        ({"total_tokens": 3, "input_tokens_details": None}, UsageReport(None, None, 3)),
        (
            {"input_tokens_details": {"cached_tokens": 1}, "output_tokens_details": {"reasoning_tokens": 2}},
            UsageReport(
                extra={
                    "prompt_tokens_details": {"cached_tokens": 1},
                    "completion_tokens_details": {"reasoning_tokens": 2},
                }
            ),
        ),
        (None, None),
    ],
)
def test_usage(usage: Json, report: UsageReport | None) -> None:
    reports: list[Event] = [event for event in decoded(whole(message("a"), usage=usage)) if type(event) is UsageReport]
    assert reports == ([] if report is None else [report])


FAILED: Final[Json] = {"code": "server_error", "message": "It broke."}


@pytest.mark.parametrize(
    ("event", "status", "code"),
    [
        ({"type": "error", "code": "server_error", "message": "It broke."}, 502, "upstream_error"),
        ({"type": "error", "error": FAILED}, 502, "upstream_error"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "x"}, 429, "rate_limit_exceeded"),
        ({"type": "error", "code": "server_is_overloaded", "message": "x"}, 503, "upstream_overloaded"),
        ({"type": "error", "error": {"code": "slow_down"}}, 503, "upstream_overloaded"),
        ({"error": {"type": "insufficient_quota", "message": "x"}}, 429, "insufficient_quota"),
        ({"type": "response.failed", "response": {"status": "failed", "error": FAILED}}, 502, "upstream_error"),
        ({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded"}}}, 400,
         "context_length_exceeded"),
        ({"type": "response.failed"}, 502, "upstream_error"),
        ({"type": "response.cancelled", "response": {"status": "cancelled"}}, 502, "upstream_error"),
        ({"type": "response.completed", "response": {"status": "failed", "error": FAILED}}, 502, "upstream_error"),
    ],
)  # fmt: skip
def test_a_failure_inside_a_stream(event: WireEvent, status: int, code: str) -> None:
    started = [added(0, message()), delta("output_text", 0, "a", content_index=0)]
    error = failure(sse(created(), *started, event))
    assert error is not None
    assert (error.status, error.code, error.events) == (status, code, (START, TextDelta("a")))


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"status": "failed", "output": [], "error": {"code": "rate_limit_exceeded"}}', 429, "rate_limit_exceeded"),
        (b'{"status": "cancelled", "output": []}', 502, "upstream_error"),
        (b'{"error": {"message": "It broke."}}', 502, "upstream_error"),
        (b'{"id": "r1", "status": "completed"}', 502, "upstream_invalid_response"),
        (b'{"id": "r1", "output": []}', 502, "upstream_invalid_response"),
        (b"[]", 502, "upstream_invalid_event"),
        (b'{"status": "completed", "output": [7]}', 502, "upstream_invalid_event"),
    ],
)
def test_a_failure_of_a_whole_response(body: bytes, status: int, code: str) -> None:
    error = failure(body)
    assert error is not None and (error.status, error.code) == (status, code)


@pytest.mark.parametrize(
    "events",
    [
        [added(0, message())],
        [added(0, message()), added(0, message())],
        [*text_events(0, "a"), done(0, message("a"))],
        [*text_events(0, "a"), delta("output_text", 0, "b", content_index=0)],
        [delta("function_call_arguments", 0, "{")],
        [added(0, call(name=None)), delta("function_call_arguments", 0, "{")],
        [added(0, message()), {"type": "response.output_text.delta", "delta": "x", "content_index": 0}],
        [added(0, message()), delta("output_text", 0, "x", content_index=-1)],
        [added(0, message()), delta("output_text", 0, "x", content_index=True)],
        [added(0, message()), {**delta("output_text", 0, "", content_index=0), "delta": None}],
        [{"type": "response.output_item.added", "output_index": 0}],
        [{"type": "response.output_item.added", "output_index": 0, "item": {}}],
        [{"type": "response.completed"}],
    ],
)
def test_events_that_break_the_grammar_are_an_error(events: Sequence[WireEvent]) -> None:
    error = failure(streamed(*events))
    assert error is not None and (error.status, error.code) == (502, "upstream_invalid_event")
    assert [notice.rule for notice in error.notices] == ["MALFORMED_EVENT"]


@pytest.mark.parametrize("data", [b"[]", b"7", b"{}", b'{"type": 7}', b"{no json"])
def test_data_that_is_no_event_is_an_error(data: bytes) -> None:
    error = failure(sse(created()) + b"data: " + data + b"\n\n")
    assert error is not None and error.code == "upstream_invalid_event"


@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n", b"data: [DONE]", b": bye\n\n"])
def test_the_end_of_the_bytes_is_not_the_end_of_the_response(end: bytes) -> None:
    error = failure(sse(created(), *text_events(0, "a")) + end)
    assert isinstance(error, BackendTruncated) and error.code == "upstream_stream_truncated"
    error = failure(b": hi\n\n" + end)
    assert isinstance(error, BackendTruncated) and error.code == "upstream_invalid_response"


def test_an_end_mark_may_follow_the_response_and_nothing_else() -> None:
    wire = streamed(*text_events(0, "a"))
    assert rules(wire + b"data: [DONE]\n\n") == []
    assert rules(wire + sse(ended())) == ["LATE_EVENT"]
    assert decoded(wire + sse(ended())) == decoded(wire)


def test_silent_events_say_nothing() -> None:
    silent: list[WireEvent] = [{"type": kind} for kind in ("keepalive", "response.queued", "response.in_progress")]
    assert decoded(streamed(*silent, *text_events(0, "a"))) == [START, TextDelta("a"), STOP]
    assert rules(streamed(*silent, *text_events(0, "a"))) == []


def test_a_response_without_output_is_reported() -> None:
    assert decoded(streamed()) == [START, STOP]
    assert rules(streamed()) == ["EMPTY_ANSWER"]


def test_a_response_is_bounded() -> None:
    error = failure(b'{"output": [' + b" " * (5 << 20))
    assert error is not None and error.code == "upstream_response_too_large"
