"""Every event of a stream, in its place and complete; a client that checks the grammar reads all of them."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_responses.client import stream
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from adapters.openai_responses.client.stream import ResponsesStreamEncoder
from gateway.core.conversation import Json
from gateway.core.errors import BackendRejected, BackendTruncated, GatewayError, InvalidRequest, OwnWords
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
from gateway.dialect import AnswerHead, ClientRequest
from gateway.dialects.event_stream import PING
from gateway.dialects.stream_state import STREAM_TRANSITIONS, StreamInput, StreamState
from gateway.testing.dialect_case import HEAD
from gateway.testing.strategies import answers
from tests.adapters.openai_responses.client.client import Stream, check_response, streamed
from tests.adapters.openai_responses.client.requests import decoded
from tests.transitions import arrows, followed, record

DIALECT: Final = OpenAIResponsesDialect()
STATE: Final = {"id": "rs_theirs", "encrypted_content": "gAAA"}
THEIRS: Final = ReasoningEnd(with_provider_state("openai", STATE))
SEARCH: Final[dict[str, Any]] = {"id": "ws_1", "type": "web_search_call"}
SEARCHED: Final[tuple[dict[str, Any], ...]] = (
    {"type": "response.output_item.added", "item": SEARCH},
    {"type": "response.web_search_call.searching", "item_id": "ws_1"},
    {"type": "response.output_item.done", "item": SEARCH},
)
UNNAMED: Final[tuple[dict[str, Any], ...]] = (
    {"type": "response.output_item.added", "item": {"type": "web_search_call"}},
    {"type": "response.web_search_call.searching"},
    {"type": "response.output_item.done", "item": {"type": "web_search_call"}},
)
CITATION: Final[dict[str, Any]] = {"type": "url_citation"}


def sent(events: Sequence[Event], request: ClientRequest | None = None, head: AnswerHead = HEAD) -> bytes:
    """The bytes of a whole stream, fed event by event."""
    encoder = DIALECT.stream_encoder(request or decoded(), head)
    return b"".join([encoder.feed([event]) for event in events]) + encoder.close()


def answered(events: Sequence[Event], request: ClientRequest | None = None, head: AnswerHead = HEAD) -> Stream:
    """The answer that a strict client reads; a whole answer has the same items."""
    own = any(isinstance(event, PassthroughFields) and event.scope == "event" for event in events)
    read = streamed(sent(events, request, head), own=own)
    assert read.last is not None
    whole = json.loads(DIALECT.encode_answer(request or decoded(), head, events))
    check_response(whole)
    assert whole == read.last
    return read


def events_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(block.partition(b"data: ")[2]) for block in data.split(b"\n\n") if b"data: " in block]


def kinds(data: bytes) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events_of(data)]


TEXT: Final = (
    *("output_item.added", "content_part.added", "output_text.delta", "output_text.done"),
    *("content_part.done", "output_item.done"),
)
THOUGHT: Final = (
    *("output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done"),
    *("content_part.done", "output_item.done"),
)
SUMMARIZED: Final = (
    *("reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done"),
    "reasoning_summary_part.done",
)
CALLED: Final = (
    *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done"),
    "output_item.done",
)
CALL: Final[tuple[Event, ...]] = (ToolCallStart(0, "c", "f"), ToolCallDelta(0, "{}"), ToolCallEnd(0))


def own(kind: str, **fields: Json) -> PassthroughFields:
    """An event of a backend of the same dialect, about its first item."""
    return PassthroughFields("event", {"type": f"response.{kind}", "output_index": 0, **fields})


def began(kind: str, **fields: Json) -> PassthroughFields:
    return own("output_item.added", item={"type": kind, **fields})


def summary(index: int) -> PassthroughFields:
    part: Json = {"type": "summary_text", "text": ""}
    return own("reasoning_summary_part.added", summary_index=index, part=part)


ITEMS: Final[dict[str, tuple[list[Event], tuple[str, ...]]]] = {
    "nothing": ([], ()),
    "text": ([TextDelta("a")], TEXT),
    "reasoning": ([ReasoningDelta("a")], THOUGHT),
    "reasoning, then text": ([ReasoningDelta("a"), TextDelta("b")], (*THOUGHT, *TEXT)),
    "reasoning that ends twice": ([ReasoningDelta("a"), ReasoningEnd({}), ReasoningDelta("b")], (*THOUGHT, *THOUGHT)),
    "reasoning with state": (
        [
            began("reasoning", id="rs_theirs", summary=[]),
            ReasoningDelta("a"),
            ReasoningEnd(with_provider_state("openai", STATE)),
        ],
        THOUGHT,
    ),
    "state without reasoning": (
        [THEIRS],
        ("output_item.added", "output_item.done"),
    ),
    "state of another maker": (
        [ReasoningEnd(with_provider_state("anthropic", {"data": "x"}))],
        ("output_item.added", "output_item.done"),
    ),
    "summaries": (
        [
            began("reasoning", summary=[]),
            summary(0),
            ReasoningDelta("a"),
            ReasoningDelta("b"),
            summary(1),
            ReasoningDelta("c"),
        ],
        ("output_item.added", *SUMMARIZED[:2], *SUMMARIZED[1:], *SUMMARIZED, "output_item.done"),
    ),
    "a call": ([*CALL], CALLED),
    "a call without arguments": ([CALL[0], CALL[2]], CALLED),
    "text around a call": ([TextDelta("a"), *CALL, TextDelta("b")], (*TEXT, *CALLED, *TEXT)),
    "text within a call": ([*CALL[:2], TextDelta("a"), CALL[2]], (*CALLED, *TEXT)),
    "calls that interleave": (
        [
            CALL[0],
            ToolCallStart(1, "d", "g"),
            ToolCallDelta(1, "{"),
            CALL[1],
            ToolCallDelta(1, "}"),
            ToolCallEnd(1),
            CALL[2],
        ],
        (*CALLED, *CALLED),
    ),
    "an annotation": (
        [
            began("message"),
            TextDelta("a"),
            own("output_text.annotation.added", annotation=CITATION),
        ],
        (*TEXT[:3], "output_text.annotation.added", *TEXT[3:]),
    ),
    "logprobs": ([PassthroughFields("delta", {"logprobs": [{"token": "a"}]}), TextDelta("a")], TEXT),
    "other fields of deltas": (
        [
            PassthroughFields("delta", {"x": 1}),
            TextDelta("a"),
            CALL[0],
            PassthroughFields("delta", {"x": 1}),
            *CALL[1:],
            PassthroughFields("delta", {"x": 1}),
            ReasoningDelta("a"),
        ],
        (*TEXT, *CALLED, *THOUGHT),
    ),
    "an item of the backend": (
        [
            TextDelta("a"),
            *[PassthroughFields("event", {"output_index": 7, **event}) for event in SEARCHED],
        ],
        (*TEXT, "output_item.added", "web_search_call.searching", "output_item.done"),
    ),
    "an item that only was done": (
        [PassthroughFields("event", {"type": "response.output_item.done", "item": {"id": "ws_1", "type": "x"}})],
        ("output_item.added", "output_item.done"),
    ),
}


@pytest.mark.parametrize("name", ITEMS)
def test_items_are_written_by_their_events(name: str) -> None:
    events, expected = ITEMS[name]
    whole: list[Event] = [ResponseStart(), *events, Finish("stop")]
    answered(whole)
    assert kinds(sent(whole)) == ["created", "in_progress", *expected, "completed"]


def test_an_item_of_the_backend_gets_the_next_index_and_stands_in_the_answer() -> None:
    events, _ = ITEMS["an item of the backend"]
    data = sent([ResponseStart(), *events, TextDelta("b"), Finish("stop")])
    indexes = [event["output_index"] for event in events_of(data) if "output_index" in event]
    assert indexes == sorted(indexes) and set(indexes) == {0, 1, 2}
    assert [item["type"] for item in events_of(data)[-1]["response"]["output"]] == [
        "message",
        "web_search_call",
        "message",
    ]


@pytest.mark.parametrize(
    ("events", "indexes"),
    [
        ([{"output_index": at, **event} for at in (3, 4) for event in UNNAMED], [1, 1, 1, 2, 2, 2]),
        ([UNNAMED[2]], [1, 1]),
    ],
)
def test_an_item_of_the_backend_may_lack_an_id(events: list[dict[str, Any]], indexes: list[int]) -> None:
    passed = [PassthroughFields("event", event) for event in events]
    *data, last = events_of(sent([ResponseStart(), TextDelta("a"), *passed, Finish("stop")]))
    assert [event["output_index"] for event in data if "web_search_call" in str(event)] == indexes
    assert [item["type"] for item in last["response"]["output"]] == ["message", *["web_search_call"] * indexes[-1]]


def test_reasoning_keeps_the_id_and_the_state_of_its_maker() -> None:
    for name in ("reasoning with state", "state without reasoning"):
        (item,) = answered([ResponseStart(), *ITEMS[name][0], Finish("stop")]).done.values()
        assert STATE.items() <= item.items()


def test_a_text_with_annotations_and_logprobs_has_them_at_its_end() -> None:
    begun, *annotated = ITEMS["an annotation"][0]
    events = [begun, *ITEMS["logprobs"][0], TextDelta("b"), *annotated]
    (item,) = answered([ResponseStart(), *events, Finish("stop")]).done.values()
    (part,) = item["content"]
    assert (part["text"], part["logprobs"], part["annotations"]) == (
        "aba",
        [{"token": "a"}],
        [{"type": "url_citation"}],
    )


def test_other_fields_of_deltas_pass() -> None:
    data = sent([ResponseStart(), *ITEMS["other fields of deltas"][0], Finish("stop")])
    deltas = [event for event in events_of(data) if event["type"].endswith(".delta")]
    assert [delta["x"] for delta in deltas] == [1, 1, 1]


def test_fields_of_the_response_pass() -> None:
    events: list[Event] = [ResponseStart(), PassthroughFields("response", {"service_tier": "flex"}), Finish("stop")]
    last = answered(events).last
    assert last is not None and last["service_tier"] == "flex"


def test_an_answer_that_was_cut_off_has_an_incomplete_item() -> None:
    (item,) = answered([ResponseStart(), TextDelta("a"), Finish("length")]).done.values()
    assert item["status"] == "incomplete"


def test_a_long_call_id_is_shortened_alike_every_time() -> None:
    events: list[Event] = [ResponseStart(), ToolCallStart(0, "x" * 80, "f"), ToolCallEnd(0), Finish("tool_calls")]
    ids = {item["call_id"] for _ in range(2) for item in answered(events).done.values()}
    assert len(ids) == 1 and len(ids.pop()) <= 64


def test_the_response_repeats_the_request() -> None:
    asked = {
        "instructions": "Be brief.",
        "tools": [{"type": "web_search"}],
        "tool_choice": "auto",
        "temperature": 0.5,
        "metadata": {"a": "b"},
        "text": {"verbosity": "low"},
        "reasoning": {"effort": "low"},
        "store": True,
        "max_output_tokens": 9,
        "user": None,
    }
    last = answered([ResponseStart(), Finish("stop")], decoded(**asked)).last
    assert last is not None
    expected = {
        **asked,
        "store": False,
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": None},
        "model": HEAD.model,
        "id": f"resp_{HEAD.unique}",
    }
    assert {key: last.get(key) for key in expected} == expected


def test_a_message_has_the_fields_that_a_backend_of_the_same_dialect_gave_it() -> None:
    events: list[Event] = [
        began("message", phase="commentary"),
        TextDelta("a"),
        began("message"),
        TextDelta("b"),
        Finish("stop"),
    ]
    messages = answered([ResponseStart(), *events]).done
    assert [item.get("phase") for item in messages.values()] == ["commentary", None]
    assert [item["content"][0]["text"] for item in messages.values()] == ["a", "b"]


USAGE: Final[dict[str, tuple[list[UsageReport], dict[str, Any] | None, str | None]]] = {
    "none": ([], None, None),
    "all": (
        [
            UsageReport(
                9,
                4,
                13,
                extra={
                    "prompt_tokens_details": {"cached_tokens": 5},
                    "completion_tokens_details": {"reasoning_tokens": 3},
                },
            )
        ],
        {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 13,
        },
        None,
    ),
    "in two reports": (
        [UsageReport(9), UsageReport(None, 4, extra={"prompt_tokens_details": {"cached_tokens": None}})],
        {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 13,
        },
        None,
    ),
    "estimated": (
        [UsageReport(9, 4, estimated=True)],
        {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 13,
        },
        "estimated",
    ),
}


@pytest.mark.parametrize("name", USAGE)
def test_the_tokens_are_told(name: str) -> None:
    reports, expected, note = USAGE[name]
    last = answered([ResponseStart(), TextDelta("a"), Finish("stop"), *reports]).last
    assert last is not None and last["usage"] == expected
    assert last.get("dragoman", {}).get("usage") == note


def test_silence_is_broken_by_a_comment_and_then_by_an_event() -> None:
    encoder = DIALECT.stream_encoder(decoded(), HEAD)
    assert encoder.quiet() == PING == encoder.quiet()
    data = encoder.feed([ResponseStart(), TextDelta("a")]) + encoder.quiet() + encoder.feed([TextDelta("b")])
    assert kinds(data)[-3:] == ["output_text.delta", "in_progress", "output_text.delta"]
    data += encoder.feed([Finish("stop")])
    assert encoder.quiet() == PING
    assert streamed(data + encoder.close()).shown().text == "ab"


def _rejected(code: str) -> GatewayError:
    error = BackendRejected("their words", status=429, kind="rate_limit", code=code)
    error.own_words = OwnWords("our words", code)
    return error


FAILURES: Final[dict[str, tuple[GatewayError, str, str]]] = {
    "a cut": (BackendTruncated("cut"), "cut", "upstream_stream_truncated"),
    "a rate limit": (_rejected("rate_limit_exceeded"), "our words", "rate_limit_exceeded"),
    "no quota": (_rejected("insufficient_quota"), "our words", "insufficient_quota"),
    "too long": (InvalidRequest("long", code="context_length_exceeded"), "long", "context_length_exceeded"),
    "what no other attempt mends": (InvalidRequest("no", code="some_code"), "no", "invalid_prompt"),
}


@pytest.mark.parametrize("events", [[], [ResponseStart()], [ResponseStart(), TextDelta("a"), *CALL[:2]]], ids=len)
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_told_twice_and_nothing_follows(name: str, events: list[Event]) -> None:
    error, message, code = FAILURES[name]
    encoder = DIALECT.stream_encoder(decoded(), HEAD)
    data = encoder.feed(events) + encoder.fail(error)
    assert kinds(data)[-2:] == ["error", "failed"]
    failed = events_of(data)[-1]["response"]
    assert failed["error"] == {"code": code, "message": message}
    assert streamed(data).shown().finish is None
    assert encoder.close() == encoder.fail(error) == b""


def test_lines_end_only_where_events_end() -> None:
    text = "a\u2028b\u2029c\u0085d\r\ne"
    assert answered([ResponseStart(), TextDelta(text), Finish("stop")]).shown().text == text


STEPS: Final[dict[str, tuple[list[Event], bool, tuple[StreamInput, ...]]]] = {
    "a failure before the first event": ([ResponseStart()], True, ("write", "end")),
    "a failure within the answer": ([ResponseStart(), TextDelta("a")], True, ("write", "end")),
    "a failure behind the answer": ([ResponseStart(), Finish("stop")], True, ("write", "finish", "end")),
    "an answer": ([ResponseStart(), TextDelta("a"), Finish("stop")], False, ("write", "finish", "end")),
    "an empty answer": ([ResponseStart(), Finish("stop")], False, ("write", "finish", "end")),
}


def inputs(events: list[Event], *, fails: bool) -> list[str]:
    with pytest.MonkeyPatch.context() as patched:
        seen = record(patched, "STREAM_TRANSITIONS", stream)
        encoder = ResponsesStreamEncoder(decoded(), HEAD)
        encoder.feed(events)
        if fails:
            encoder.fail(BackendTruncated("cut"))
        # The end of an answer that has failed is no further input.
        encoder.close()
    return seen


@pytest.mark.parametrize("name", STEPS)
def test_the_events_of_an_answer_are_the_inputs_of_its_encoder(name: str) -> None:
    events, fails, expected = STEPS[name]
    assert inputs(events, fails=fails) == list(expected)


def test_these_answers_take_every_arrow_of_the_table() -> None:
    """But for those that no answer of this dialect takes: it begins once, also before a failure."""
    taken = [followed(STREAM_TRANSITIONS, StreamState.NEW, expected) for _, _, expected in STEPS.values()]
    others = {(StreamState.NEW, "end"), (StreamState.OPEN, "write"), (StreamState.FINISHED, "write")}
    assert set().union(*taken) == arrows(STREAM_TRANSITIONS) - others


@given(answers(), st.integers(0, 40))
def test_any_answer_that_fails_anywhere_ends_once(events: list[Event], at: int) -> None:
    seen = inputs(events[:at], fails=True)
    assert seen.count("end") == 1 and seen[-1] == "end"


@given(answers())
def test_a_stream_obeys_the_grammar_however_it_is_fed(events: list[Event]) -> None:
    one_by_one = sent(events)
    encoder = DIALECT.stream_encoder(decoded(), HEAD)
    assert encoder.feed(events) + encoder.close() == one_by_one
    head = msgspec.structs.replace(HEAD, diagnostics=True)
    answered(events, head=head)
