import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from adapters.openai_chat.client.completion import encode_completion
from adapters.openai_chat.client.stream import ChatStreamEncoder
from gateway.core.answer import read_answer
from gateway.core.conversation import Json
from gateway.core.errors import BackendTruncated
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
from gateway.core.grammar import Grammar
from gateway.core.notices import Notice
from gateway.dialects.event_stream import DONE
from gateway.testing.strategies import answers

START = ResponseStart()
STOP = Finish("stop")


def encoder(*, include_usage: bool = False, diagnostics: bool = False) -> ChatStreamEncoder:
    return ChatStreamEncoder("chatcmpl-1", 7, "m", include_usage=include_usage, diagnostics=diagnostics)


def chunks(data: bytes) -> list[dict[str, Any]]:  # Any: read with json
    """The chunks of a stream, split as the strictest and the sloppiest client would."""
    assert data.decode().splitlines() == data.decode().split("\n")[:-1]
    events = data.split(b"\n\n")
    assert events.pop() == b""
    return [json.loads(event.removeprefix(b"data: ")) for event in events if event != b"data: [DONE]"]


def streamed(events: list[Event], **options: bool) -> list[dict[str, Any]]:
    made = encoder(**options)
    data = made.feed(events) + made.close()
    assert data.endswith(DONE) and data.count(DONE) == 1
    return chunks(data)


def deltas(events: list[Event]) -> list[Any]:
    return [chunk["choices"][0]["delta"] for chunk in streamed([START, *events, STOP])[:-1]]


def test_a_text_stream_byte_for_byte() -> None:
    made = encoder()
    assert made.feed([START]) == b""
    head = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,'
    assert made.feed([TextDelta('é"')]) == (
        head + b'"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
        + head + b'"delta":{"content":"\xc3\xa9\\""},"finish_reason":null}]}\n\n'
    )  # fmt: skip
    assert made.feed([STOP]) == head + b'"delta":{},"finish_reason":"stop"}]}\n\n'
    assert made.close() == b"data: [DONE]\n\n"
    assert made.close() == b""


def test_calls_are_numbered_densely_in_the_order_they_start() -> None:
    events: list[Event] = [
        ToolCallStart(9, "a", "f", extra={"extra_content": {"g": 1}}),
        ToolCallStart(2, "b", "g"),
        ToolCallDelta(2, '{"x"'),
        ToolCallDelta(9, "{}"),
        ToolCallEnd(9),
        ToolCallDelta(2, ":1}"),
        ToolCallEnd(2),
    ]
    function = {"name": "f", "arguments": ""}
    assert deltas(events) == [
        {"role": "assistant", "content": None},
        {"tool_calls": [
            {"index": 0, "id": "a", "type": "function", "function": function, "extra_content": {"g": 1}}
        ]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {**function, "name": "g"}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": '{"x"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": ":1}"}}]},
    ]  # fmt: skip


def test_a_call_without_arguments_has_the_empty_object() -> None:
    assert deltas([ToolCallStart(0, "a", "f"), ToolCallEnd(0)])[2:] == [
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
    ]


def test_a_custom_call_has_its_own_shape() -> None:
    extra = {"type": "custom"}
    assert deltas([ToolCallStart(0, "a", "f", extra=extra), ToolCallDelta(0, "x"), ToolCallEnd(0)])[1:] == [
        {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "x"}}]},
    ]


def test_reasoning_has_a_field_of_its_own() -> None:
    assert deltas([ReasoningDelta("hm"), TextDelta("x")]) == [
        {"role": "assistant", "content": None},
        {"reasoning_content": "hm"},
        {"content": "x"},
    ]


def test_an_empty_answer_is_still_an_answer() -> None:
    first, last = streamed([START, STOP])
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert last["choices"][0]["finish_reason"] == "stop"


def test_usage_is_told_only_to_those_who_ask() -> None:
    events: list[Event] = [START, TextDelta("x"), STOP, UsageReport(1, 2, 3, extra={"details": {"y": 4}})]
    assert all("usage" not in chunk and chunk["choices"] for chunk in streamed(events))
    *chunks, last = streamed(events, include_usage=True)
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "details": {"y": 4}}


def test_no_usage_is_invented() -> None:
    assert all(chunk["usage"] is None for chunk in streamed([START, STOP], include_usage=True))


def test_derived_usage_says_so() -> None:
    last = streamed([START, STOP, UsageReport(total_tokens=3)], include_usage=True)[-1]
    assert last["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 3}
    assert last["dragoman"] == {"usage": "total_only"}


def test_diagnostics_stand_in_the_last_chunk_when_asked_for() -> None:
    notice = Notice("repair", "added", "CALLS_UNANSWERED", "one answer", index=2, tool_call_id="a")
    events: list[Event] = [notice, START, STOP]
    assert all("dragoman" not in chunk for chunk in streamed(events))
    last = streamed(events, diagnostics=True)[-1]
    assert last["choices"] == []
    assert last["dragoman"]["diagnostics"] == [
        {
            "stage": "repair",
            "action": "added",
            "rule": "CALLS_UNANSWERED",
            "detail": "one answer",
            "index": 2,
            "tool_call_id": "a",
            "level": "info",
        }
    ]


def test_values_that_python_calls_equal_are_told_apart() -> None:
    values: list[Json] = [1, True, 1.0, 0, False, {"a": 0}, {"a": False}]
    events: list[Event] = [TextDelta("x")]
    for value in values:
        events += [PassthroughFields("response", {"v": value}), TextDelta("x")]
    told = [json.dumps(chunk["v"]) for chunk in streamed([START, *events, STOP]) if "v" in chunk]
    assert told == [json.dumps(value) for value in values]


def test_unknown_fields_stay_in_their_places() -> None:
    events: list[Event] = [
        START,
        PassthroughFields("response", {"fp": 1}),
        PassthroughFields("choice", {"logprobs": {"content": []}}),
        PassthroughFields("delta", {"mood": "good"}),
        TextDelta("x"),
        TextDelta("y"),
        PassthroughFields("choice", {"stop_reason": 7}),
        STOP,
    ]
    _, first, second, last = streamed(events)
    assert first["fp"] == 1
    assert first["choices"] == [
        {"index": 0, "delta": {"content": "x", "mood": "good"}, "finish_reason": None, "logprobs": {"content": []}}
    ]
    assert "fp" not in second and second["choices"][0].keys() == {"index", "delta", "finish_reason"}
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": 7}]


@pytest.mark.parametrize(
    ("events", "at"),
    [
        ([PassthroughFields("response", {"fp": 1}), START, TextDelta("x"), STOP], 1),
        (
            [
                START,
                PassthroughFields("response", {"a": 1}),
                PassthroughFields("response", {"fp": 1}),
                TextDelta("x"),
                STOP,
            ],
            1,
        ),
        ([START, TextDelta("x"), PassthroughFields("response", {"fp": 1}), STOP], 2),
    ],
)
def test_fields_of_the_response_go_with_the_next_chunk(events: list[Event], at: int) -> None:
    assert [n for n, chunk in enumerate(streamed(events)) if chunk.get("fp")] == [at]


FIELDS = (
    PassthroughFields("response", {"r": 1}),
    PassthroughFields("response", {"r": 2}),
    PassthroughFields("choice", {"c": 1}),
    PassthroughFields("delta", {"d": 1}),
)
PIECES: tuple[Event, ...] = (TextDelta("x"), ReasoningDelta("x"), ToolCallDelta(0, "x"), ToolCallDelta(1, "x"))


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(st.tuples(st.sets(st.sampled_from(range(len(FIELDS)))), st.sampled_from(PIECES)), max_size=6))
def test_every_delta_has_its_own_fields_and_no_others(steps: list[tuple[set[int], Event]]) -> None:
    events: list[Event] = [START, ToolCallStart(0, "a", "f"), ToolCallStart(1, "b", "f")]
    begun = len(streamed(events))
    for places, piece in steps:
        events += [*(FIELDS[place] for place in sorted(places)), piece]
    told = [(chunk.get("r"), (it := chunk["choices"][0]).get("c"), it["delta"].get("d")) for chunk in streamed(events)]
    assert told[begun:] == [
        (2 if 1 in places else 1 if 0 in places else None, 1 if 2 in places else None, 1 if 3 in places else None)
        for places, _ in steps
    ]


def test_fields_that_come_again_without_a_delta_have_a_chunk_too() -> None:
    stream = encoder()
    stream.feed([START, FIELDS[0], FIELDS[2], TextDelta("x")])
    (alone,) = chunks(stream.feed([FIELDS[0]]))
    assert alone["r"] == 1
    assert "c" not in alone["choices"][0]


def test_fields_alone_make_a_chunk() -> None:
    made = encoder()
    made.feed([START, TextDelta("x")])
    (middle,) = chunks(made.feed([PassthroughFields("response", {"fp": 1})]))
    assert (middle["fp"], middle["choices"]) == (1, [{"index": 0, "delta": {}, "finish_reason": None}])
    (unknown,) = chunks(made.feed([PassthroughFields("delta", {"a": "b"}), PassthroughFields("delta", {"a": "c"})]))
    assert unknown["choices"][0]["delta"] == {"a": "bc"}
    made.feed([STOP])
    (late,) = chunks(made.feed([PassthroughFields("response", {"fp": 2})]))
    assert (late["fp"], late["choices"]) == (2, [])


def test_fields_beside_the_usage_stay_there() -> None:
    events: list[Event] = [START, STOP, PassthroughFields("response", {"fp": 1}), UsageReport(1, 2, 3)]
    assert streamed(events, include_usage=True)[-1]["fp"] == 1
    assert len(streamed(events)) == 2


def test_an_error_is_one_frame_and_the_end() -> None:
    made = encoder()
    made.feed([START, TextDelta("x")])
    (frame,) = chunks(made.fail(BackendTruncated("cut\u2028off")))
    assert frame == {
        "error": {
            "message": "Provider returned error 502 (server error): cut\u2028off",
            "type": "server_error",
            "param": None,
            "code": "upstream_stream_truncated",
        }
    }
    assert made.close() == b""
    assert made.fail(BackendTruncated("again")) == b""


@given(answers(), st.booleans())
def test_the_official_client_folds_the_stream_to_the_whole_answer(events: list[Event], include_usage: bool) -> None:
    grammar = Grammar()
    grammar.check(events)
    grammar.close()
    whole = ChatCompletion.model_validate_json(
        encode_completion(read_answer(events), id="chatcmpl-1", created=7, model="m")
    )
    state = ChatCompletionStreamState()
    for chunk in streamed(events, include_usage=include_usage):
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    folded = state.current_completion_snapshot
    assert folded.choices[0].finish_reason == whole.choices[0].finish_reason
    assert said(folded) == said(whole)
    if include_usage and whole.usage is not None:
        assert folded.usage == whole.usage


def said(completion: ChatCompletion) -> dict[str, object]:
    message = completion.choices[0].message.to_dict(exclude_none=True, exclude_unset=False)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        call.pop("index", None)  # what a stream needs to join deltas
        call["function"].pop("parsed_arguments", None)
    return {key: value for key, value in message.items() if key != "parsed" and value not in ([], None)}


@settings(max_examples=60, deadline=None)
@given(answers(), st.lists(st.integers(0, 30), max_size=4))
def test_how_events_come_together_changes_nothing(events: list[Event], places: list[int]) -> None:
    whole, cut = encoder(include_usage=True, diagnostics=True), encoder(include_usage=True, diagnostics=True)
    bounds = [0, *sorted(places), len(events)]
    pieces = [events[start:end] for start, end in pairwise(bounds)]
    assert whole.feed(events) + whole.close() == b"".join(map(cut.feed, pieces)) + cut.close()


def test_the_states_of_reasoning_are_one_field_of_the_last_delta() -> None:
    one: dict[str, Json] = {"extra_content": {"maker": {"signature": "s"}}}
    other: dict[str, Json] = {"extra_content": {"maker": {"signature": "t"}}}
    reasons: list[Event] = [ReasoningDelta("hm"), ReasoningEnd(one), TextDelta("ok")]
    assert deltas(reasons)[1:] == [{"reasoning_content": "hm"}, {"content": "ok"}]
    assert last_delta(*reasons) == one
    several = {"extra_content": {"maker": {"thoughts": [{"signature": "s"}, {"signature": "t"}]}}}
    assert last_delta(*reasons, ReasoningEnd(other)) == several


def last_delta(*events: Event) -> Json:
    last: Json = streamed([START, *events, STOP])[-1]["choices"][0]["delta"]
    return last
