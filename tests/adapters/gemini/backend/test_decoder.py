"""Chunks and parts as events: unknown fields, finish reasons, blocked prompts, broken and late chunks."""

import json
from typing import Any

import pytest

from adapters.gemini.backend.adapter import GeminiAdapter, GeminiOptions
from adapters.gemini.backend.decoder import GeminiDecoder
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTruncated, InvalidToolCall
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
from gateway.testing.adapter_case import MAX_EVENT
from gateway.testing.replay import replay
from tests.adapters.gemini.backend.wires import call, chunk, sse, text, usage

STATE = with_provider_state("google", {"thought_signature": "c2ln"})
END = chunk(finish="STOP", **usage())


def decode(*chunks: Any, passes: bool = False) -> list[Event]:
    return replay(GeminiDecoder(MAX_EVENT, 1, passes=passes), [sse(*chunks)])


def said(*chunks: Any, passes: bool = False) -> list[Event]:
    """The events without the start, the finish, the counts and the fields of chunks."""
    framing = (ResponseStart, Finish, UsageReport)
    events = [event for event in decode(*chunks, passes=passes) if not isinstance(event, framing)]
    return [event for event in events if not (isinstance(event, PassthroughFields) and event.scope == "response")]


@pytest.mark.parametrize(
    ("part", "events", "own"),
    [
        (text("a"), [TextDelta("a")], [TextDelta("a")]),
        (text(""), [], [PassthroughFields("event", {"text": ""})]),
        (text("a", thought=True), [ReasoningDelta("a")], [ReasoningDelta("a")]),
        (
            text("a", thoughtSignature="c2ln"),
            [TextDelta("a"), ReasoningEnd(STATE)],
            [PassthroughFields("delta", {"thoughtSignature": "c2ln"}), TextDelta("a")],
        ),
        (
            text("", thoughtSignature="c2ln"),
            [ReasoningEnd(STATE)],
            [PassthroughFields("event", {"text": "", "thoughtSignature": "c2ln"})],
        ),
        (
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            [TextDelta("```python\n1\n```")],
            [PassthroughFields("event", {"executableCode": {"language": "PYTHON", "code": "1"}})],
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
            [Notice("backend", "dropped", "PART_UNKNOWN", "a content part of an unknown type", level="warning")],
            [PassthroughFields("event", {"inlineData": {"mimeType": "image/png", "data": "eA=="}})],
        ),
    ],
)
def test_a_part_is_an_event(part: dict[str, Json], events: list[Event], own: list[Event]) -> None:
    assert said(chunk(part), END) == events
    assert said(chunk(part), END, passes=True) == own


def test_the_fields_of_a_chunk_reach_only_a_client_of_the_same_dialect() -> None:
    made = chunk(text("a"), createTime="now")
    made["candidates"][0]["safetyRatings"] = []
    assert not any(isinstance(event, PassthroughFields) for event in decode(made, END))
    _, fields, part, *_ = decode(made, END, passes=True)
    made["candidates"][0]["content"]["parts"] = []
    assert (fields, part) == (PassthroughFields("response", made), TextDelta("a"))


def test_chunks_without_output_wait_for_the_first_part() -> None:
    """Until then a failure can still be a status."""
    decoder = GeminiDecoder(MAX_EVENT, 1, passes=True)
    assert decoder.feed(sse(chunk(), chunk(text("")), usage())) == []
    kinds = [type(event) for event in decoder.feed(sse(chunk(text("a"))))]
    frame = [PassthroughFields]
    assert kinds == [ResponseStart, *frame, *frame, PassthroughFields, *frame, *frame, TextDelta]


def pieces(*calls: dict[str, Any], reason: str = "STOP") -> list[Event]:
    return said(
        *[chunk({"functionCall": call, **({} if n else SIGNED)}) for n, call in enumerate(calls)], chunk(finish=reason)
    )


SIGNED = {"thoughtSignature": "c2ln"}
BEGIN = {"name": "f", "id": "k", "willContinue": True}


def argument(path: str, **value: Json) -> dict[str, Json]:
    return {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}


@pytest.mark.parametrize(
    ("calls", "arguments"),
    [
        ([argument("$.a", stringValue="x", willContinue=True), argument("$.a", stringValue="y"), {}], {"a": "xy"}),
        ([argument("$.a", numberValue=1.5), argument("$['b.c']", boolValue=False), {}], {"a": 1.5, "b.c": False}),
        (
            [argument('$["a"][0].b', nullValue=None), argument("$.a[2]", nullValue="NULL_VALUE"), {}],
            {"a": [{"b": None}, None, None]},
        ),
        (
            [
                argument("$.a", willContinue=True),
                {"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": ""}]},
            ],
            {"a": ""},
        ),
        (
            [{"args": {"b": 1}, "willContinue": True}, {"partialArgs": [{"jsonPath": "$.a", "numberValue": 2}]}],
            {"b": 1, "a": 2},
        ),
        ([{}], {}),
    ],
)
def test_a_call_in_pieces_is_one_call(calls: list[dict[str, Any]], arguments: Json) -> None:
    """Vertex AI, `streamFunctionCallArguments`: the call begins with its name, and may end with an empty one."""
    start, delta, end = pieces(BEGIN, *calls)
    assert start == ToolCallStart(0, "k", "f", extra=STATE)
    assert isinstance(delta, ToolCallDelta) and json.loads(delta.arguments) == arguments
    assert end == ToolCallEnd(0)


@pytest.mark.parametrize("passes", [False, True])
def test_each_piece_of_a_call_is_progress(passes: bool) -> None:
    decoder = GeminiDecoder(MAX_EVENT, 1, passes=passes)
    seen = []
    for piece in (BEGIN, argument("$.a", stringValue="x"), argument("$.a", stringValue="y")):
        decoder.feed(sse(chunk({"functionCall": piece})))
        assert decoder.extensions.holding is not None
        seen.append(decoder.extensions.holding.progress)
    assert seen == [1, 2, 3]


def test_calls_in_pieces_follow_one_another() -> None:
    calls: list[dict[str, Any]] = [
        BEGIN,
        argument("$.n", numberValue=1),
        {},
        {"name": "g", **argument("$.n", numberValue=2)},
        {"willContinue": False},
    ]
    found = [event.arguments for event in pieces(*calls, {"name": "h"}) if isinstance(event, ToolCallDelta)]
    assert found == ['{"n":1}', '{"n":2}', "{}"]


@pytest.mark.parametrize(
    "calls",
    [
        [argument("a", stringValue="x")],
        [argument("$.a..b", stringValue="x")],
        [argument("$.a[*]", stringValue="x")],
        [argument("$.a[999999]", stringValue="x")],
        [argument("$" + ".a" * 3000, stringValue="x")],
        [argument("$.a", listValue=[])],
        [argument("$.a", numberValue=1), argument("$.a.b", numberValue=1)],
        [argument("$.a", numberValue=1), argument("$.a[0]", numberValue=1)],
        [{"partialArgs": [1]}],
        [{"name": "g"}],
        [argument("$.a", stringValue="x")],
    ],
    ids=lambda calls: json.dumps(calls)[:80],
)
def test_a_call_that_cannot_be_joined_or_does_not_end_is_an_error(calls: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidToolCall):
        pieces(BEGIN, *calls)


def test_a_call_that_the_token_limit_cuts_ends_with_what_it_has() -> None:
    found = pieces(BEGIN, argument("$.a", stringValue="x"), reason="MAX_TOKENS")
    assert found[-2:] == [ToolCallDelta(0, '{"a":"x"}'), ToolCallEnd(0)]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        *((word, "content_filter") for word in ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT")),
        *((word, "content_filter") for word in ("SPII", "MODEL_ARMOR", "ESCALATION", "IMAGE_SAFETY")),
        *((word, "content_filter") for word in ("IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION")),
    ],
)
def test_a_finish_reason_of_a_complete_response(word: str, reason: Any) -> None:
    """Source: google-genai 3.6.1, `FinishReason`."""
    assert decode(chunk(text("a"), finish=word))[-1] == Finish(reason, word)
    called = decode(chunk(call("f", {}), finish=word))[-1]
    assert called == Finish("tool_calls" if reason == "stop" else reason, word)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("MALFORMED_FUNCTION_CALL", InvalidToolCall),
        ("UNEXPECTED_TOOL_CALL", InvalidToolCall),
        ("TOO_MANY_TOOL_CALLS", InvalidToolCall),
        ("MISSING_THOUGHT_SIGNATURE", InvalidToolCall),
        ("MALFORMED_RESPONSE", BackendRejected),
        ("PUP_LIMITED_DISABLED", BackendRejected),
        ("IMAGE_OTHER", BackendRejected),
        ("NO_IMAGE", BackendRejected),
        ("OTHER", BackendRejected),
        ("FINISH_REASON_UNSPECIFIED", BackendRejected),
        ("A_WORD_OF_TOMORROW", BackendRejected),
    ],
)
def test_any_other_reason_is_an_error_that_keeps_the_text(word: str, kind: type[BackendError]) -> None:
    with pytest.raises(kind) as caught:
        decode(chunk(text("a"), finish=word))
    assert TextDelta("a") in caught.value.events


@pytest.mark.parametrize("word", ["SAFETY", "PROHIBITED_CONTENT", "JAILBREAK"])
def test_a_blocked_prompt_is_an_answer_that_a_filter_ended(word: str) -> None:
    assert Finish("content_filter", word) in decode({"promptFeedback": {"blockReason": word}})


def test_a_prompt_without_an_explained_answer_is_an_error() -> None:
    with pytest.raises(BackendRejected):
        decode({"promptFeedback": {"blockReason": "OTHER"}})


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {"candidates": 1},
        {"candidates": [1]},
        {"candidates": [{"content": 1}]},
        {"candidates": [{"content": {"parts": 1}}]},
        {"candidates": [{"content": {"parts": [1]}}]},
        {"candidates": [{"finishReason": 1}]},
        chunk({"functionCall": 1}),
        chunk({"functionCall": {"name": "f", "args": "x"}}),
    ],
)
def test_a_broken_chunk_is_an_error(broken: Json) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        decode(chunk(text("a")), broken)
    assert TextDelta("a") in caught.value.events


@pytest.mark.parametrize("chunks", [[], [chunk(text("a"))], [chunk(call("f", {}))]])
def test_a_response_without_a_finish_reason_is_truncated(chunks: list[Json]) -> None:
    with pytest.raises(BackendTruncated):
        decode(*chunks)
    with pytest.raises(BackendError):
        replay(GeminiDecoder(MAX_EVENT, 1, passes=False), [json.dumps(chunks).encode()])


def test_what_follows_a_complete_response_changes_nothing() -> None:
    finished = chunk(text("a"), finish="STOP")
    late = decode(finished, chunk(text("b"), finish="STOP"), [], {**usage()})
    assert [event for event in late if isinstance(event, TextDelta | Finish)] == [
        TextDelta("a"),
        Finish("stop", "STOP"),
    ]
    assert {event.rule for event in late if isinstance(event, Notice)} == {"LATE_CONTENT", "LATE_EVENT", "LATE_FAULT"}


COMPLETE = [chunk(text("a"), finish="STOP", **usage())]


@pytest.mark.parametrize(
    "late",
    [
        sse(chunk(text("b"))),
        sse(chunk(finish="MAX_TOKENS", **usage(5, 6))),
        sse(usage(5, 6)),
        sse({"error": {"code": 500, "message": "no"}}),
        b"data: oops\n\n",
        b"data: " + b"x" * MAX_EVENT + b"\n\n",
    ],
    ids=["content", "a second end", "other counts", "an error", "no JSON", "a large event"],
)
@pytest.mark.parametrize("ended", [True, False], ids=["whole", "without its blank line"])
def test_after_the_counts_of_a_finished_response_nothing_is_read_however_it_is_cut(late: bytes, ended: bool) -> None:
    if not ended:
        late = late.rstrip()
    apart = replay(GeminiDecoder(MAX_EVENT, 1, passes=False), [sse(*COMPLETE), late])
    decoder = GeminiDecoder(MAX_EVENT, 1, passes=False)
    together = decoder.feed(sse(*COMPLETE) + late)
    assert decoder.done and decoder.close() == []
    assert [event for event in together if not isinstance(event, Notice)] == apart == decode(*COMPLETE)
    assert {event.rule for event in together if isinstance(event, Notice)} <= {"LATE_EVENT"}


def test_more_after_the_end_of_a_response_is_reported() -> None:
    assert [event.rule for event in decode(*COMPLETE, *COMPLETE) if isinstance(event, Notice)] == ["LATE_EVENT"]


@pytest.mark.parametrize(
    ("counts", "report"),
    [
        ({"promptTokenCount": 3}, UsageReport(3)),
        ({"promptTokenCount": 3, "candidatesTokenCount": 1, "thoughtsTokenCount": 2, "totalTokenCount": 6}, (3, 3, 6)),
        ({"promptTokenCount": -1, "candidatesTokenCount": "x", "totalTokenCount": True}, (None, None, None)),
    ],
)
def test_thoughts_belong_to_the_completion(counts: Json, report: Any) -> None:
    (found,) = [event for event in decode(chunk(finish="STOP", usageMetadata=counts)) if isinstance(event, UsageReport)]
    told = (found.prompt_tokens, found.completion_tokens, found.total_tokens)
    assert told == (report if isinstance(report, tuple) else (report.prompt_tokens, None, None))


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (400, {"message": "bad", "status": "INVALID_ARGUMENT"}, (400, "invalid_value", "bad")),
        (400, {"message": "exceeds the maximum number of tokens"}, (400, "context_length_exceeded", None)),
        (400, {"message": "no", "details": [{"reason": "API_KEY_INVALID"}]}, (502, "upstream_auth_error", None)),
        (400, {"message": "bad", "details": [{"reason": []}]}, (400, "invalid_value", "bad")),
        (403, {"message": "no"}, (502, "upstream_auth_error", None)),
        (404, {"message": "no model"}, (404, "model_not_found", "no model")),
        (429, {"message": "slow", "details": [{"retryDelay": "31s"}]}, (429, "rate_limit_exceeded", "slow")),
        (500, {"message": "secret"}, (502, "upstream_error", None)),
        (503, {"message": "secret"}, (503, "upstream_overloaded", None)),
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_an_error_is_told_by_its_status(status: int, error: dict[str, Json], told: Any, listed: bool) -> None:
    body: Json = {"error": {"code": status, **error}}
    adapter = GeminiAdapter(GeminiOptions(), MAX_EVENT)
    found = adapter.decode_error(status, {}, json.dumps([body] if listed else body).encode())
    assert (found.status, found.code) == told[:2]
    assert told[2] in (None, found.message) and "secret" not in found.message
    assert (found.headers.get("retry-after") == "31") is (status == 429)
