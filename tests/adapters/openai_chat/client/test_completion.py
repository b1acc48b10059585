import json
from typing import Any

import pytest

from adapters.openai_chat.client.completion import encode_completion
from gateway.core.answer import read_answer
from gateway.core.conversation import Json
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


def answered(*events: Event, diagnostics: bool = False) -> dict[str, Any]:  # Any: read with json
    body = encode_completion(
        read_answer([ResponseStart(), *events]), id="chatcmpl-1", created=7, model="m", diagnostics=diagnostics
    )
    answer = json.loads(body)
    assert isinstance(answer, dict)
    return answer


def test_a_whole_answer() -> None:
    assert answered(TextDelta("Hel"), TextDelta("lo"), Finish("length"), UsageReport(1, 2, 3)) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None},
                "logprobs": None,
                "finish_reason": "length",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }


def test_interleaved_calls() -> None:
    answer = answered(
        ToolCallStart(4, "a", "f", extra={"x": 1, "function": {"y": 2}}),
        ToolCallStart(1, "b", "g"),
        ToolCallDelta(4, '{"n"'),
        ToolCallEnd(1),
        ToolCallDelta(4, ":1}"),
        ToolCallEnd(4),
        Finish("tool_calls"),
    )
    message = answer["choices"][0]["message"]
    assert message["content"] is None
    assert message["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"n":1}', "y": 2}, "x": 1},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]


@pytest.mark.parametrize(
    ("events", "content"),
    [
        ([], ""),
        ([TextDelta("x")], "x"),
        ([ReasoningDelta("hm")], None),
        ([ReasoningDelta("hm"), TextDelta("x")], "x"),
        ([ToolCallStart(0, "a", "f"), ToolCallEnd(0)], None),
        ([TextDelta("x"), ToolCallStart(0, "a", "f"), ToolCallEnd(0)], "x"),
        ([PassthroughFields("delta", {"refusal": "No."})], None),
    ],
)
def test_content_is_null_only_where_something_else_is_said(events: list[Event], content: str | None) -> None:
    assert answered(*events, Finish("stop"))["choices"][0]["message"]["content"] == content


def test_unknown_fields_are_joined_where_they_belong() -> None:
    answer = answered(
        PassthroughFields("response", {"fp": "a"}),
        PassthroughFields("choice", {"logprobs": {"content": [1]}}),
        PassthroughFields("delta", {"mood": "go", "audio": {"data": "x"}, "n": 1}),
        TextDelta("x"),
        PassthroughFields("response", {"fp": "b"}),
        PassthroughFields("choice", {"logprobs": {"content": [2]}}),
        PassthroughFields("delta", {"mood": "od", "audio": {"data": "y", "id": "i"}, "n": 2}),
        Finish("stop"),
    )
    (choice,) = answer["choices"]
    assert answer["fp"] == "b"
    assert choice["logprobs"] == {"content": [1, 2]}
    assert choice["message"]["mood"] == "good"
    assert choice["message"]["audio"] == {"data": "xy", "id": "i"}
    assert choice["message"]["n"] == 2


def test_folding_leaves_the_events_as_they_were() -> None:
    first = PassthroughFields("choice", {"logprobs": {"content": [1]}})
    answered(first, PassthroughFields("choice", {"logprobs": {"content": [2]}}), Finish("stop"))
    assert first == PassthroughFields("choice", {"logprobs": {"content": [1]}})


def test_no_usage_no_diagnostics_unless_there_are_any() -> None:
    notice = Notice("trim", "dropped", "HISTORY_LIMITED", "2 turns")
    assert {"usage", "dragoman"} & answered(notice, Finish("stop")).keys() == set()
    answer = answered(notice, Finish("stop"), UsageReport(total_tokens=5), diagnostics=True)
    assert answer["dragoman"]["usage"] == "total_only"
    assert [said["rule"] for said in answer["dragoman"]["diagnostics"]] == ["HISTORY_LIMITED"]


def test_the_state_of_reasoning_is_a_field_of_the_message() -> None:
    state: dict[str, Json] = {"extra_content": {"maker": {"signature": "s"}}}
    answer = answered(ReasoningDelta("hm"), ReasoningEnd(state), TextDelta("ok"), Finish("stop"))
    message = answer["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "ok", "refusal": None, "reasoning_content": "hm", **state}
