import json
from typing import Any, Final

import pytest

from adapters.ollama.client.answer import CHAT, GENERATE, answer_echo, encode_answer
from adapters.ollama.client.errors import encode_error
from adapters.ollama.client.models import encode_model, encode_models
from adapters.ollama.client.paths import CHAT_PATHS, GENERATE_PATHS
from adapters.ollama.client.stream import NDJSON, OllamaStreamEncoder
from gateway.core.answer import read_answer
from gateway.core.conversation import JsonObject
from gateway.core.errors import BackendTruncated, InvalidRequest
from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.field_paths import FieldPaths
from gateway.dialect import AnswerHead, AnswerTimes, ListedModels, ModelInfo

HEAD: Final = AnswerHead(
    "0" * 24, 1_700_000_000, "m", lambda: 1_700_000_000, times=lambda: AnswerTimes(1_000, 20_000, 300_000)
)
DURATIONS: Final = {
    "total_duration": 321_000,
    "load_duration": 1_000,
    "prompt_eval_duration": 20_000,
    "eval_duration": 300_000,
}
TIME: Final = "2023-11-14T22:13:20Z"
OPENING: Final = {"model": "m", "created_at": TIME}
START: Final = ResponseStart()


def lines(events: list[Event], echo: JsonObject | None = None) -> list[dict[str, Any]]:
    encoder = OllamaStreamEncoder(answer_echo(CHAT) if echo is None else echo, HEAD)
    return [json.loads(line) for line in (encoder.feed(events) + encoder.close()).splitlines()]


def test_the_lines_of_a_chat() -> None:
    events: list[Event] = [
        START,
        ReasoningDelta("hm"),
        ReasoningEnd({}),
        TextDelta("x"),
        Finish("stop"),
        UsageReport(3, 2, 5),
    ]
    assert lines(events) == [
        {**OPENING, "message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
        {**OPENING, "message": {"role": "assistant", "content": "x"}, "done": False},
        {
            **OPENING,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            **DURATIONS,
            "prompt_eval_count": 3,
            "eval_count": 2,
        },
    ]


def test_the_lines_of_an_answer_to_a_prompt() -> None:
    events: list[Event] = [START, ReasoningDelta("hm"), TextDelta("x"), Finish("length")]
    assert lines(events, answer_echo(GENERATE)) == [
        {**OPENING, "response": "", "thinking": "hm", "done": False},
        {**OPENING, "response": "x", "done": False},
        {**OPENING, "response": "", "done": True, "done_reason": "length", **DURATIONS},
    ]


def test_calls_stand_whole_in_the_order_in_which_they_are_complete() -> None:
    events: list[Event] = [
        START,
        ToolCallStart(5, "a", "f"),
        ToolCallStart(2, "b", "g"),
        ToolCallDelta(5, '{"n":'),
        ToolCallEnd(2),
        ToolCallDelta(5, "1}"),
        ToolCallEnd(5),
        Finish("tool_calls"),
    ]
    second, first, last = lines(events)
    assert second["message"]["tool_calls"] == [{"id": "b", "function": {"index": 0, "name": "g", "arguments": {}}}]
    assert first["message"]["tool_calls"] == [{"id": "a", "function": {"index": 1, "name": "f", "arguments": {"n": 1}}}]
    assert last["done_reason"] == "stop"
    whole = json.loads(encode_answer(read_answer(events), answer_echo(CHAT), HEAD))
    assert whole["message"]["tool_calls"] == [*second["message"]["tool_calls"], *first["message"]["tool_calls"]]


def test_arguments_that_are_no_object_stand_in_one() -> None:
    events: list[Event] = [
        START,
        ToolCallStart(0, "a", "f"),
        ToolCallDelta(0, "[1"),
        ToolCallEnd(0),
        Finish("tool_calls"),
    ]
    assert lines(events)[0]["message"]["tool_calls"][0]["function"]["arguments"] == {"arguments": "[1"}


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (UsageReport(3, 2, 5), {"prompt_eval_count": 3, "eval_count": 2}),
        (UsageReport(3, None, 5), {"prompt_eval_count": 3, "eval_count": 2}),
        (UsageReport(None, 2, None), {"eval_count": 2}),
        (UsageReport(3, 0, 3), {"prompt_eval_count": 3}),
        (UsageReport(None, None, 7), {}),
    ],
)
def test_a_count_that_nobody_knows_is_left_out(usage: UsageReport, counts: dict[str, int]) -> None:
    last = lines([START, TextDelta("x"), Finish("stop"), usage])[-1]
    assert {name: last[name] for name in ("prompt_eval_count", "eval_count") if name in last} == counts


def test_an_estimate_says_so() -> None:
    last = lines([START, TextDelta("x"), Finish("stop"), UsageReport(3, 2, 5, estimated=True)])[-1]
    assert last["dragoman"] == {"usage": "estimated"}


@pytest.mark.parametrize("field", [CHAT, GENERATE])
def test_no_text_breaks_a_line(field: Any) -> None:
    text = "a\u2028b\u2029c\x85d\n\r\x0b\x0c\x1c"
    encoder = OllamaStreamEncoder(answer_echo(field), HEAD)
    for event in (TextDelta(text), ReasoningDelta(text)):
        data = encoder.feed([event])
        assert len(data.decode().splitlines()) == 1 and data.endswith(b"\n")
        line = json.loads(data)
        content = line if field == GENERATE else line["message"]
        assert text in content.values()
    assert len(encoder.fail(BackendTruncated(text)).decode().splitlines()) == 1


def test_a_keep_alive_is_a_line_without_text() -> None:
    for field in (CHAT, GENERATE):
        encoder = OllamaStreamEncoder(answer_echo(field), HEAD)
        line = json.loads(encoder.quiet())
        assert line["done"] is False and (line.get("response", line.get("message", {}).get("content"))) == ""
    assert dict(OllamaStreamEncoder.headers)[b"content-type"] == NDJSON.encode()


@pytest.mark.parametrize("reason", ["load", "unload"])
def test_the_empty_answer_says_why_it_is_empty(reason: str) -> None:
    answer = json.loads(encode_answer(read_answer(()), answer_echo(CHAT, reason), HEAD))
    message = {"role": "assistant", "content": ""}
    assert answer == {**OPENING, "message": message, "done": True, "done_reason": reason, **DURATIONS}


def test_an_error_has_the_text_where_clients_look_and_facts_beside_it() -> None:
    error = InvalidRequest("Wrong.", param="options.seed", headers={"x": "y"}, extra={"violations": []})
    status, headers, body, media_type = encode_error(error)
    assert (status, headers, media_type) == (400, {"x": "y"}, "application/json")
    assert json.loads(body) == {
        "error": "Wrong.",
        "code": "invalid_value",
        "param": "options.seed",
        "violations": [],
    }


def test_a_model_tells_what_it_can() -> None:
    plain = json.loads(encode_model(ModelInfo("a/b", 1_700_000_000, tools=False)))
    assert plain["capabilities"] == ["completion"]
    assert plain["model_info"] == {"general.architecture": "dragoman", "general.basename": "a/b"}
    assert "context_length" not in plain["details"]
    able = json.loads(encode_model(ModelInfo("m", 1_700_000_000, images=True, context_length=8192)))
    assert able["capabilities"] == ["completion", "tools", "vision"]
    assert able["model_info"]["dragoman.context_length"] == able["details"]["context_length"] == 8192
    assert able["modified_at"] == TIME


def test_listed_models_have_a_tag_and_a_digest() -> None:
    names = ("m", "m2", "m2:latest", "n:7b")
    listed = json.loads(encode_models(ListedModels([ModelInfo(name, 1_700_000_000) for name in names], "away")))
    assert [model["name"] for model in listed["models"]] == ["m:latest", "m2", "m2:latest", "n:7b"]
    assert all(model["model"] == model["name"] for model in listed["models"])
    digests = {model["digest"] for model in listed["models"]}
    assert len(digests) == 4 and all(len(digest) == 64 for digest in digests)
    assert listed["dragoman"] == {"missing": "away"}


@pytest.mark.parametrize("paths", [CHAT_PATHS, GENERATE_PATHS])
def test_options_are_known_by_their_places(paths: FieldPaths) -> None:
    assert paths.param("max_tokens") == "options.num_predict"
    assert paths.param("response_format") == "format"
    assert paths.param("temperature") == "options.temperature"
