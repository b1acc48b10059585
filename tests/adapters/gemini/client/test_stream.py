"""The chunks of both forms of a stream, the whole answer, token counts, finish reasons and errors."""

import json
from typing import Any, Final

import msgspec
import pytest

from adapters.gemini.client.answer import encode_answer
from adapters.gemini.client.errors import encode_error
from adapters.gemini.client.stream import GeminiStreamEncoder
from adapters.gemini.client.stream_form import ARRAY, EVENTS, StreamForm
from gateway.core.answer import read_answer
from gateway.core.conversation import Json
from gateway.core.errors import BackendRejected, GatewayError, InvalidRequest
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    Reason,
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
from gateway.dialect import AnswerHead

HEAD: Final = AnswerHead("abc", 1, "m", lambda: 1)
END: Final = Finish("stop")
STATE: Final = with_provider_state("google", {"thought_signature": "c2ln"})
OTHER_STATE: Final = with_provider_state("anthropic", {"signature": "x"})
CALL: Final[list[Event]] = [
    ToolCallStart(0, "k", "f"),
    ToolCallDelta(0, '{"n":'),
    ToolCallDelta(0, "1}"),
    ToolCallEnd(0),
]


def encoder(form: StreamForm = EVENTS) -> GeminiStreamEncoder:
    return GeminiStreamEncoder(HEAD, form)


def chunks(*events: Event) -> list[dict[str, Any]]:
    """The chunks of a complete stream of events."""
    made = encoder()
    data = made.feed(events) + made.close()
    return [json.loads(line.removeprefix(b"data: ")) for line in data.split(b"\n\n")[:-1]]


def whole(*events: Event) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(encode_answer(read_answer(events), HEAD))
    return answer


def parts(answer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer["candidates"][0]["content"]["parts"]
    return found


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([TextDelta("a"), TextDelta("b")], [{"text": "a"}, {"text": "b"}]),
        ([ReasoningDelta("a")], [{"text": "a", "thought": True}]),
        (
            [ReasoningDelta("a"), ReasoningEnd(STATE)],
            [{"text": "a", "thought": True}, {"text": "", "thoughtSignature": "c2ln"}],
        ),
        ([ReasoningEnd(OTHER_STATE)], []),
        (CALL, [{"functionCall": {"id": "k", "name": "f", "args": {"n": 1}}}]),
        ([ToolCallStart(0, "k", "f"), ToolCallEnd(0)], [{"functionCall": {"id": "k", "name": "f", "args": {}}}]),
        (
            [ToolCallStart(0, "k", "f", extra=STATE), ToolCallEnd(0)],
            [{"functionCall": {"id": "k", "name": "f", "args": {}}, "thoughtSignature": "c2ln"}],
        ),
        (
            [ToolCallStart(0, "k", "f"), ToolCallDelta(0, "no JSON"), ToolCallEnd(0)],
            [{"functionCall": {"id": "k", "name": "f", "args": {"arguments": "no JSON"}}}],
        ),
        (
            [PassthroughFields("delta", {"thoughtSignature": "x"}), TextDelta("a")],
            [{"text": "a", "thoughtSignature": "x"}],
        ),
        ([PassthroughFields("event", {"executableCode": {"code": "1"}})], [{"executableCode": {"code": "1"}}]),
    ],
)
def test_an_event_is_a_part_of_a_chunk_of_its_own(events: list[Event], said: list[dict[str, Any]]) -> None:
    *before, last = chunks(ResponseStart(), *events, END)
    assert [part for chunk in before for part in parts(chunk)] == said
    assert [len(parts(chunk)) for chunk in before] == [1] * len(said)
    assert parts(last) == [{"text": ""}] and last["candidates"][0]["finishReason"] == "STOP"


def test_interleaved_calls_are_whole_parts_in_the_order_of_their_ends() -> None:
    events: list[Event] = [
        ToolCallStart(7, "a", "f"),
        ToolCallStart(2, "b", "g"),
        ToolCallDelta(2, '{"x":1}'),
        TextDelta("t"),
        ToolCallDelta(7, '{"y":2}'),
        ToolCallEnd(2),
        ToolCallEnd(7),
        Finish("tool_calls"),
    ]
    calls = [{"id": "b", "name": "g", "args": {"x": 1}}, {"id": "a", "name": "f", "args": {"y": 2}}]
    expected = [{"text": "t"}, *({"functionCall": call} for call in calls)]
    assert [part for chunk in chunks(*events)[:-1] for part in parts(chunk)] == expected == parts(whole(*events))


def test_pieces_of_a_thought_are_one_part_of_a_whole_answer() -> None:
    events = (ReasoningDelta("hm"), ReasoningDelta("m"), TextDelta("a"), TextDelta("b"), END)
    assert parts(whole(*events)) == [{"text": "hmm", "thought": True}, {"text": "ab"}]
    streamed = "".join(part["text"] for chunk in chunks(*events) for part in parts(chunk))
    assert streamed == "hmmab"


OWN_CHUNK: Final = PassthroughFields(
    "response", {"candidates": [{"content": {"parts": []}, "safetyRatings": [], "finishReason": "STOP"}], "x": 1}
)


def test_the_chunk_of_a_backend_of_the_same_api_stays_one_chunk() -> None:
    events = (OWN_CHUNK, TextDelta("a"), PassthroughFields("delta", {"y": 2}), ReasoningDelta("b"), *CALL, END)
    (chunk,) = chunks(*events)
    candidate: Any = {"safetyRatings": [], "finishReason": "STOP"}
    call = {"functionCall": {"id": "k", "name": "f", "args": {"n": 1}}}
    candidate["content"] = {"parts": [{"text": "a"}, {"text": "b", "thought": True, "y": 2}, call]}
    assert chunk == whole(*events) == {"candidates": [candidate], "x": 1, "modelVersion": "m", "responseId": "abc"}


def test_a_failure_follows_the_chunk_before_it() -> None:
    made = encoder(ARRAY)
    data = made.feed([OWN_CHUNK, TextDelta("a"), END]) + made.fail(GatewayError("no", status=503))
    first, last = json.loads(data)
    assert parts(first) == [{"text": "a"}] and "error" in last


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (UsageReport(3, 4, 7), {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}),
        (
            UsageReport(
                3,
                4,
                7,
                extra={
                    "completion_tokens_details": {"reasoning_tokens": 3},
                    "prompt_tokens_details": {"cached_tokens": 2},
                    "queue_time": 1,
                },
            ),
            {
                "promptTokenCount": 3,
                "candidatesTokenCount": 1,
                "totalTokenCount": 7,
                "cachedContentTokenCount": 2,
                "thoughtsTokenCount": 3,
            },
        ),
        (None, None),
    ],
)
@pytest.mark.parametrize("late", [True, False])
def test_the_counts_stand_in_the_last_chunk(usage: UsageReport | None, told: dict[str, Any] | None, late: bool) -> None:
    reported: list[Event] = [] if usage is None else [usage]
    events: list[Event] = [TextDelta("a"), *([END, *reported] if late else [*reported, END])]
    first, last = chunks(*events)
    assert "usageMetadata" not in first
    assert last.get("usageMetadata") == told == whole(*events).get("usageMetadata")


@pytest.mark.parametrize(
    ("reason", "raw", "word"),
    [
        ("stop", "end_turn", "STOP"),
        ("tool_calls", None, "STOP"),
        ("length", "length", "MAX_TOKENS"),
        ("content_filter", "refusal", "SAFETY"),
        ("content_filter", "RECITATION", "RECITATION"),
    ],
)
def test_the_finish_reason_is_a_word_of_the_api(reason: Reason, raw: str | None, word: str) -> None:
    finish = Finish(reason, raw)
    assert chunks(TextDelta("a"), finish)[-1]["candidates"][0]["finishReason"] == word
    assert whole(TextDelta("a"), finish)["candidates"][0]["finishReason"] == word


def test_the_array_is_json_of_the_same_chunks() -> None:
    made = encoder(ARRAY)
    data = (
        made.quiet()
        + made.feed([TextDelta("a\u2028")])
        + made.quiet()
        + made.feed([TextDelta("b"), END])
        + made.close()
    )
    assert json.loads(data) == chunks(TextDelta("a\u2028"), TextDelta("b"), END)
    assert dict(made.headers)[b"content-type"].startswith(b"application/json")


@pytest.mark.parametrize("events", [[], [TextDelta("a")]])
def test_a_failure_is_the_last_element_of_an_array(events: list[Event]) -> None:
    made = encoder(ARRAY)
    *before, last = json.loads(made.feed(events) + made.fail(GatewayError("no", status=503)))
    assert len(before) == len(events) and last["error"]["status"] == "UNAVAILABLE"


@pytest.mark.parametrize("events", [[], [TextDelta("a")]])
def test_a_failure_follows_the_events_as_a_line_without_end(events: list[Event]) -> None:
    made = encoder()
    made.feed(events)
    assert json.loads(said := made.fail(GatewayError("no", status=503)))["error"]["code"] == 503
    assert said.startswith(b"{") and b"\n" not in said
    assert made.close() == b""


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (402, "RESOURCE_EXHAUSTED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (405, "INVALID_ARGUMENT"),
        (409, "ABORTED"),
        (413, "INVALID_ARGUMENT"),
        (415, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (501, "UNIMPLEMENTED"),
        (502, "UNAVAILABLE"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ],
)
def test_each_status_has_its_canonical_code(status: int, word: str) -> None:
    answer = encode_error(GatewayError("no", status=status))
    error = msgspec.json.decode(answer.body)["error"]
    assert (answer.status, error["code"], error["status"], error["message"]) == (status, status, word, "no")


def test_the_details_name_code_field_and_delay() -> None:
    wrong = InvalidRequest("no", code="x", param="contents[0]", extra={"violations": []})
    error = msgspec.json.decode(encode_error(wrong).body)["error"]
    kind = "type.googleapis.com/google.rpc."
    assert error["details"] == [
        {"@type": f"{kind}ErrorInfo", "reason": "x", "domain": "dragoman"},
        {"@type": f"{kind}BadRequest", "fieldViolations": [{"field": "contents[0]", "description": "no"}]},
    ]
    assert error["violations"] == []
    limited = BackendRejected("slower", status=429, headers={"retry-after": "7"})
    last = msgspec.json.decode(encode_error(limited).body)["error"]["details"][-1]
    assert last == {"@type": f"{kind}RetryInfo", "retryDelay": "7s"}


OWN_HEAD: Final[dict[str, Any]] = {"modelVersion": "m", "responseId": "abc"}


def test_text_behind_a_chunk_without_a_candidate_arrives() -> None:
    """The gateway holds text back while a stop sequence may follow."""
    without: list[dict[str, Json]] = [{}, {"candidates": []}]
    for first in without:
        events: list[Event] = [PassthroughFields("response", {"x": 1, **first}), TextDelta("a"), END]
        candidate = {"index": 0, "content": {"parts": [{"text": "a"}], "role": "model"}}
        assert [*chunks(*events), whole(*events)] == [{"x": 1, "candidates": [candidate], **OWN_HEAD}] * 2


@pytest.mark.parametrize("text", [TextDelta("a"), None])
@pytest.mark.parametrize("candidates", [[{"index": 0, "x": 1}], [{"index": 0, "finishReason": None}], [], None])
def test_an_answer_that_the_gateway_ends_has_a_finish_reason(text: TextDelta | None, candidates: Json) -> None:
    chunk: dict[str, Json] = {} if candidates is None else {"candidates": candidates}
    said = [] if text is None else [text]
    events: list[Event] = [PassthroughFields("response", chunk), *said, Finish("stop", "stop sequence")]
    late: list[Event] = [PassthroughFields("response", {"candidates": [{"index": 0}], "x": 2})]
    first, second = chunks(*events, *late)
    assert [one["finishReason"] for one in first["candidates"]] == ["STOP"]
    assert second == {"candidates": [{"index": 0}], "x": 2, **OWN_HEAD}
    assert [one["finishReason"] for one in whole(*events, *late)["candidates"]] == ["STOP"]


@pytest.mark.parametrize(
    ("chunk", "finish"),
    [
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, Finish("stop", "stop sequence")),
        ({"candidates": [{"finishReason": "X_NEW"}]}, Finish("stop", "X_NEW")),
        ({"candidates": [{"index": 0}]}, END),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, Finish("content_filter", "SAFETY")),
    ],
)
def test_what_the_backend_says_of_its_end_stays(chunk: dict[str, Json], finish: Finish) -> None:
    events: list[Event] = [PassthroughFields("response", chunk), finish]
    assert [*chunks(*events), whole(*events)] == [{**chunk, **OWN_HEAD}] * 2


def test_what_stands_before_the_first_chunk_of_the_backend_is_in_both_answers() -> None:
    chunk: dict[str, Any] = {"candidates": [{"content": {"role": "model", "parts": []}, "index": 0}]}
    events: list[Event] = [TextDelta("a"), PassthroughFields("response", chunk), TextDelta("b"), END]
    streamed = [part for made in chunks(*events) for part in parts(made) if part["text"]]
    assert streamed == parts(whole(*events)) == [{"text": "a"}, {"text": "b"}]
